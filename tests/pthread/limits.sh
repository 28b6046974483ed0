#!/usr/bin/env bash
# How many threads there may be, and that pthread_create says so when there are no more: limits.sh LAUNCHER MANY_PROGRAM
launcher=$1 many=$2 failed=0
expect() {  # expect TEXT LIMIT_KIB COMMAND...: with so much address space
  local text=$1 limit=$2 out status
  shift 2
  out=$(ulimit -v "$limit" && GODWIT_WORKERS=2 timeout -k 2 120 "$launcher" "$many" "$@" 2>&1)
  status=$?
  if [ "$status" != 0 ] || [ "$out" != "$text" ]; then
    echo "FAILED: $* with $limit KiB of addresses: status $status; said: ${out:0:500}"
    failed=1
  else
    echo "ok: $out"
  fi
}
expect "many: 20000" unlimited 20000
for limit in 500000 1000000 4000000 40000000; do expect "many: there was an end, and room again" "$limit" until; done
exit $failed
