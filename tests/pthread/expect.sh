# expect STATUS TEXT COMMAND...: the command ends with this status and says this. Sets failed=1 if not. For messages.sh.
failed=0
expect() {  # expect STATUS TEXT COMMAND...
  local status=$1 text=$2 out got
  shift 2
  out=$(timeout -k 2 60 "$@" 2>&1)
  got=$?
  if [ "$got" != "$status" ] || [[ $out != *"$text"* ]]; then
    echo "FAILED: $* : status $got, not $status; said: ${out:0:500}"
    failed=1
  else
    echo "ok: ${out:0:160}"
  fi
}
