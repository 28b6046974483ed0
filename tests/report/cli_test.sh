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
grep -q "^3 workers, .* faster" "$folder/out" || { echo "FAILED: --text:"; cat "$folder/out"; failed=1; }
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

# Several files: one page or one text, and what cannot be compared.
says() {  # says TEXT: standard output of the last works has it
  grep -q -- "$1" "$folder/out" || { echo "FAILED: no '$1' in:"; cat "$folder/out"; failed=1; }
}
for workers in 1 2 4; do works "$generate" "$folder/p$workers" $workers 2000; done
works "$generate" "$folder/again" 2 2000 seed=7
rm -f "$folder"/*.html
works "$report" "$folder/p4" "$folder/p1" "$folder/p2"
says "/p4.compared.html"
[ -s "$folder/p4.compared.html" ] || { echo "FAILED: no p4.compared.html"; failed=1; }
works "$report" "$folder/p2" "$folder/again" -o "$folder/both.html"
[ -s "$folder/both.html" ] || { echo "FAILED: no both.html"; failed=1; }
works "$report" --text "$folder/p4" "$folder/p1" "$folder/p2"
says "^Speed-up [0-9.]* on [124] workers*, of at most"
says "^speed-up  *1.00  *[0-9.]*  *[0-9.]*$"
works "$report" --text "$folder/p2" "$folder/again"
says "× as fast as p2\|No run is faster than p2"
for workers in 1 2; do
  cat >"$folder/$workers.json" <<EOF
{"run": {"program": "simulated", "workers": $workers}, "workers": [{"life_ns": ${workers}00}, {"life_ns": ${workers}00}]}
EOF
done
sed -i 's/, {"life_ns": 100}//; s/200/80/g' "$folder/1.json" "$folder/2.json"
works "$report" --text "$folder/1.json" "$folder/2.json"
says "^Speed-up 1.25 on 2 workers, of at most 2.00"
works "$report" --text "$folder/1.json" "$folder/p4"
fails "p2: given twice" "$folder/p2" "$folder/p1" "$folder/p2"
fails "p2 and again: both have 2 workers" "$folder/p2" "$folder/p1" "$folder/again"
fails "from is about the time line of one run" "$folder/p2" "$folder/p1" --from 1
sed 's/simulated/other/' "$folder/2.json" >"$folder/other.json"
fails "other.json: a run of other, but 1.json is one of simulated" "$folder/1.json" "$folder/other.json"
echo '{"run": {"program": "simulated"}, "workers": [{"steals": 1}]}' >"$folder/timeless.json"
fails "timeless.json: does not say how the workers' time divides" "$folder/p2" "$folder/timeless.json"
echo '{"run": {"program": "simulated", "status": 3, "message": "no"}, "workers": [{"life_ns": 9}]}' >"$folder/bad.json"
fails "bad.json: that run failed (status 3: no)" "$folder/p2" "$folder/bad.json"
fails "cannot open it" "$folder/p2" "$folder/nothing"
exit $failed
