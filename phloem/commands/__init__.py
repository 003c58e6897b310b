"""The subcommands: each has ``add_arguments(parser)`` and ``run(namespace) -> exit code``."""
