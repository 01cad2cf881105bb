#!/usr/bin/env python3
"""A webhook receiver as somebody else would write one: checks Standard Webhooks signatures with Python's
own hmac, writes one JSON line per request to a log, and answers as told.

    receiver.py SECRET LOG PORT_FILE [--tls CERTIFICATE KEY] BEHAVIOUR...

The n-th request gets the n-th behaviour, later ones the last: a status number; "hang" (takes the request
and never answers); "cut" (ends in the middle of the answer); "drop" (closes without a word); "garbage" (no
HTTP); "flood" (200 with a body that does not end); "once" (200, then the connection is closed)."""

import base64
import hashlib
import hmac
import json
import os
import socketserver
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            behaviour = self.server.behaviours[0]
            if len(self.server.behaviours) > 1:
                self.server.behaviours.pop(0)
            self.server.log.write(json.dumps({
                "id": self.headers["webhook-id"],
                "verified": self.verified(body),
                "path": self.path,
                "host": self.headers["host"],
                "behaviour": behaviour,
                "connection": self.client_address[1],
                "event": json.loads(body),
            }) + "\n")
            self.server.log.flush()
        getattr(self, behaviour, self.status)(behaviour)

    def verified(self, body):
        timestamp = self.headers["webhook-timestamp"]
        text = b".".join([self.headers["webhook-id"].encode(), timestamp.encode(), body])
        made = base64.b64encode(hmac.new(self.server.key, text, hashlib.sha256).digest()).decode()
        given = self.headers["webhook-signature"].split(" ")
        return "v1," + made in given and abs(time.time() - int(timestamp)) < 60

    def status(self, behaviour):
        self.send_response(int(behaviour))
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def hang(self, _):
        time.sleep(600)

    def cut(self, _):
        self.send_response(200)
        self.send_header("content-length", "100")
        self.end_headers()
        self.wfile.write(b"not all of it")
        self.close_connection = True

    def drop(self, _):
        self.close_connection = True

    def garbage(self, _):
        self.wfile.write(b"220 mail.example.com ESMTP\r\n\r\n")
        self.close_connection = True

    def flood(self, _):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 65536)
        except OSError:
            self.close_connection = True

    def once(self, _):
        self.status("200")
        self.close_connection = True

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main():
    secret, log, port_file, *rest = sys.argv[1:]
    server = Server(("127.0.0.1", 0), Receiver)
    if rest[0] == "--tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(rest[1], rest[2])
        server.socket = context.wrap_socket(server.socket, server_side=True)
        rest = rest[3:]
    server.key = base64.b64decode(secret.removeprefix("whsec_"))
    server.log = open(log, "a", encoding="utf-8")
    server.behaviours = rest
    server.lock = threading.Lock()
    with open(port_file + ".part", "w", encoding="utf-8") as file:
        file.write(str(server.server_address[1]))
    os.rename(port_file + ".part", port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
