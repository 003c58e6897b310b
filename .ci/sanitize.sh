#!/usr/bin/env bash
# Run the native kernels' tests on a library built with sanitizers; fail if one reports anything.
#
#   .ci/sanitize.sh address [pytest arguments]   memory and undefined behaviour
#   .ci/sanitize.sh thread [pytest arguments]    data races
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
kind=${1:?address or thread}
shift
# Checks of every address, which the address sanitizer makes anyway, take very long to compile.
arithmetic=shift,bounds,signed-integer-overflow,integer-divide-by-zero,float-cast-overflow,bool,enum
case $kind in
  address) checks=address,$arithmetic runtime=libasan.so ;;
  thread) checks=thread runtime=libtsan.so ;;
  *) echo "no sanitizer $kind: address or thread" >&2 && exit 2 ;;
esac
out=$PWD/build/sanitize/$kind
mkdir -p "$out"
rm -f "$out"/report.*

# A compiler that adds these flags to setup.py's; the last of several levels of optimisation counts.
cat >"$out/c++" <<END
#!/bin/sh
exec g++ "\$@" -O1 -g -fno-omit-frame-pointer -fsanitize=$checks
END
chmod +x "$out/c++"
CC=$out/c++ CXX=$out/c++ "$python" setup.py --quiet build_ext \
  --build-lib "$out" --build-temp "$out/objects"

# Python and its modules are not instrumented, and never free what they hold to the end. OpenMP's
# threads synchronise in ways that the thread sanitizer does not see, so torch gets one.
# What a sanitizer itself takes of time and memory is not measured.
engine=tests/kernels/native/test_native_engine.py
settings="log_path=$out/report exitcode=66"
status=0
run() {
  env PHLOEM_LIBRARY="$out/phloem/kernels/native/libphloem.so" \
    LD_PRELOAD="$(g++ -print-file-name=$runtime)" \
    ASAN_OPTIONS="$settings detect_leaks=0" \
    UBSAN_OPTIONS="$settings print_stacktrace=1" \
    TSAN_OPTIONS="$settings ignore_noninstrumented_modules=1" \
    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 \
    setarch --addr-no-randomize "$python" "$@"
}
# A library that does not load would only skip its tests.
run -c "import ctypes, os; ctypes.CDLL(os.environ['PHLOEM_LIBRARY'])"
run -m pytest --timeout=1800 \
  --deselect "$engine::test_idle_threads_use_no_cpu" \
  --deselect "$engine::test_memory_of_weights_and_programs_is_freed" \
  "${@:-tests/kernels/native}" || status=$?
if compgen -G "$out/report.*" >/dev/null; then
  cat "$out"/report.*
  status=1
fi
exit $status
