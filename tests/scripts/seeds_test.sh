#!/usr/bin/env bash
# scripts/seeds that a signal ends leaves nothing running: seeds_test.sh SCRIPTS_SEEDS. With stand-ins for what it builds.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/scripts" "$dir/bin" "$dir/build/release/tests"
cp "$1" "$dir/scripts/seeds"
printf '#!/bin/sh\n' >"$dir/bin/cmake"
printf '#!/bin/sh\necho $$ >>"%s/running"\nexec sleep 60\n' "$dir" >"$dir/build/release/tests/seeds"
chmod +x "$dir/bin/cmake" "$dir/build/release/tests/seeds"
failed=0
for signal in INT:130 TERM:143; do
  rm -f "$dir/running"
  # A shell gives what it starts in the background no ^C.
  PATH=$dir/bin:$PATH env --default-signal=INT "$dir/scripts/seeds" 1 1 >"$dir/out" 2>&1 &
  script=$!
  for ((i = 0; i < 200; ++i)); do
    [ "$(wc -l 2>/dev/null <"$dir/running")" = "$(nproc)" ] && break
    sleep 0.05
  done
  kill -"${signal%:*}" $script
  wait $script
  status=$?
  left=0
  while read -r pid; do kill -0 "$pid" 2>/dev/null && left=$((left + 1)) && kill "$pid"; done <"$dir/running"
  if [ $status != "${signal#*:}" ] || [ $left != 0 ]; then
    echo "FAILED: SIG${signal%:*}: status $status, $left of $(nproc) still run; said: $(cat "$dir/out")"
    failed=1
  fi
done
exit $failed
