"""The engine core: requests, scheduler, executor, models, tokenizer, clients and HTTP server."""
