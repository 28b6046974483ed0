#!/bin/sh
# The pictures of docs/tutorial.md: tutorial.sh PREFIX, the folder where godwit is installed. Wants two idle CPUs.
# Writes docs/images/tutorial-parts.png (step 2) and tutorial-halves.png (step 3). Needs chromium.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
prefix=$(cd "$1" && pwd)
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name godwit.pc)")
export PKG_CONFIG_PATH PATH="$prefix/bin:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for picture in 2:parts 3:halves; do
  tail -n +2 "$root/examples/tutorial/step${picture%:*}.cpp" > integrate.cpp
  # shellcheck disable=SC2046
  c++ -std=c++20 -O2 -g integrate.cpp $(pkg-config --cflags --libs godwit) -o integrate
  ./integrate --godwit-workers=2 --godwit-trace=run.trace
  godwit-report run.trace
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=8000 --window-size=1100,1140 \
    --screenshot="$root/docs/images/tutorial-${picture#*:}.png" "file://$work/run.trace.html" 2>/dev/null
done
