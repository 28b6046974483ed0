#!/usr/bin/env bash
# A threaded HTTP server by godwit-pthread under a load generator that is not: http.sh LAUNCHER
launcher=$1
command -v /usr/bin/python3 >/dev/null || { echo "skipped: /usr/bin/python3 is not installed"; exit 77; }
command -v ab >/dev/null || { echo "skipped: ab is not installed (scripts/setup: apache2-utils)"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
head -c 20000 /dev/urandom | base64 >"$dir/page"
cat >"$dir/serve.py" <<'P'
import http.server, sys, os
os.chdir(sys.argv[1])
http.server.SimpleHTTPRequestHandler.log_message = lambda *_: None
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
open("port.new", "w").write(str(s.server_port))
os.rename("port.new", "port")
s.serve_forever()
P
"$launcher" /usr/bin/python3 "$dir/serve.py" "$dir" &
server=$!
for _ in $(seq 600); do [ -e "$dir/port" ] && break; sleep 0.1; done
timeout 60 ab -q -n 600 -c 20 "http://127.0.0.1:$(cat "$dir/port")/page" >"$dir/ab" 2>&1 || { cat "$dir/ab"; exit 1; }
grep -E "Complete|Failed|Requests per|Document Length" "$dir/ab"
grep -qE "Failed requests: +0" "$dir/ab" && grep -qE "Complete requests: +600" "$dir/ab" || exit 1
kill -0 "$server" && kill "$server" && wait "$server"
[ $? = 143 ]  # ended by SIGTERM, as a plain program would be
