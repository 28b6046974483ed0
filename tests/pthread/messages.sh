#!/usr/bin/env bash
# What godwit-pthread says where it cannot work: messages.sh LAUNCHER END_PROGRAM
launcher=$1 end=$2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
. "$(dirname "$0")/expect.sh"
expect 2 "usage:" "$launcher"
expect 127 "cannot find the program" "$launcher" no-such-program-anywhere
expect 127 "cannot run" "$launcher" ./no-such-program
echo 'int main(void) { return 0; }' >"$dir/static.c"
if cc -static "$dir/static.c" -o "$dir/static" 2>/dev/null; then expect 2 "statically linked" "$launcher" "$dir/static"; fi
expect 70 "used up its stack" "$launcher" "$end" overflow
for name in "a blank" a:colon; do  # the system divides the list of what it preloads there
  mkdir "$dir/$name"
  cp "$launcher" "$dir/$name/launcher"
  ln -s "$(dirname "$launcher")/libgodwit-pthread.so" "$dir/$name/libgodwit-pthread.so"
  expect 70 "install Godwit elsewhere" "$dir/$name/launcher" "$end" _exit
done
limited() {  # limited KIB STATUS TEXT COMMAND...: with so much address space
  local limit=$1
  shift
  local status=$1 text=$2
  shift 2
  expect "$status" "$text" bash -c 'ulimit -v "$0"; exec "$@"' "$limit" "$@"
}
limited 100000 70 "raise the limit on address space (ulimit -v)" "$launcher" "$end" _exit
limited 1000000 5 "" "$launcher" "$end" _exit
limited 4000000 0 "the last thread" "$launcher" "$end" pthread_exit
exit $failed
