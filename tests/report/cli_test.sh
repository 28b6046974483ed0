#!/bin/sh
# What godwit-report says to bad files, where it writes, its status: cli_test.sh GENERATE REPORT (ctest:
# report.cli)
generate=$1 report=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

fails() {  # fails TEXT ARGUMENT...: status 2 and one line on standard error that has TEXT in it
  text=$1
  shift
  "$report" "$@" >"$folder/out" 2>"$folder/err"
  status=$?
  if [ $status != 2 ] || [ "$(wc -l <"$folder/err")" != 1 ] || ! grep -q -- "$text" "$folder/err"; then
    echo "FAILED: $* gave status $status and:"
    cat "$folder/out" "$folder/err"
    failed=1
  fi
}
works() {
  if ! "$@" >"$folder/out" 2>"$folder/err"; then
    echo "FAILED: $*"
    cat "$folder/out" "$folder/err"
    failed=1
  fi
}

works "$generate" "$folder/run" 3 2000
works "$report" "$folder/run"
[ -s "$folder/run.html" ] || { echo "FAILED: no run.html"; failed=1; }
works "$report" "$folder/run" -o "$folder/other.html" --from 0.0001 --to 0.0005
[ -s "$folder/other.html" ] || { echo "FAILED: no other.html"; failed=1; }
rm "$folder/run.html"
works "$report" --text "$folder/run"
grep -q "^Speed-up [0-9.]* on 3 workers" "$folder/out" || { echo "FAILED: --text:"; cat "$folder/out"; failed=1; }
[ ! -e "$folder/run.html" ] || { echo "FAILED: --text wrote a page"; failed=1; }

: >"$folder/empty"
echo "some text" >"$folder/text"
echo '{"workers": [{"steals": 1' >"$folder/cut.json"
head -c 9999 "$folder/run" >"$folder/cut"
fails "empty" "$folder/empty"
fails "not a godwit trace\|truncated" "$folder/text"
fails "truncated" "$folder/cut.json"
fails "truncated" "$folder/cut"
fails "cannot open it: No such file" "$folder/nothing"
fails "not a regular file" "$folder"
fails "cannot write it: No such file" "$folder/run" -o "$folder/no/such/page.html"
mkfifo "$folder/pipe" && fails "not a regular file" "$folder/pipe"
works "$report" "$folder/run" -o "$folder/other.html"  # its own earlier page
echo "a letter" >"$folder/letter"
fails "letter: cannot write it: it exists" "$folder/run" -o "$folder/letter"
[ "$(cat "$folder/letter")" = "a letter" ] || { echo "FAILED: the letter was overwritten"; failed=1; }
: >"$folder/empty.html"
works "$report" "$folder/run" -o "$folder/empty.html"
works "$report" "$folder/run" -o /dev/null
[ ! -e /dev/full ] || fails "cannot write it: No space left" "$folder/run" -o /dev/full
exit $failed
