"""A threaded HTTP server on 127.0.0.1: serve.py FOLDER. Its port is in FOLDER/port when it can be reached. For programs.py."""
import http.server
import os
import sys

os.chdir(sys.argv[1])
http.server.SimpleHTTPRequestHandler.log_message = lambda *_: None
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
with open("port.new", "w", encoding="ascii") as f:
    f.write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
