# Threads of Python: queues, locks, conditions, a pool, an HTTP server with a thread per request and its clients.
import http.client
import http.server
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

total, lock = 0, threading.Lock()


def add():
    global total
    for _ in range(2000):
        with lock:
            total += 1


threads = [threading.Thread(target=add) for _ in range(20)]
[t.start() for t in threads]
[t.join() for t in threads]
print("total", total)

tasks, results = queue.Queue(5), queue.Queue()


def work():
    while (n := tasks.get()) is not None:
        results.put(n * n)


threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]
for i in range(1000):
    tasks.put(i)
for _ in threads:
    tasks.put(None)
[t.join() for t in threads]
print("squares", sum(results.get() for _ in range(1000)))

with ThreadPoolExecutor(10) as pool:
    print("pool", sum(pool.map(lambda n: (time.sleep(0.001), n)[1], range(200))))
event = threading.Event()
print("timed out", not event.wait(0.01))
threading.Timer(0.01, event.set).start()
print("set", event.wait(10))


class handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (self.path * 50).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
threading.Thread(target=server.serve_forever).start()


def get(n):
    c = http.client.HTTPConnection("127.0.0.1", server.server_port)
    c.request("GET", f"/page{n}")
    return len(c.getresponse().read())


with ThreadPoolExecutor(10) as pool:
    print("http", sum(pool.map(get, range(200))))
server.shutdown()
