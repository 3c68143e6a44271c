"""Controls a relay from OBS, and switches scenes when its stream is weak or gone.

Load it under Tools → Scripts. It needs Python 3.9 or newer and nothing beside it. It is also an example for authors
of plugins: docs/obs.md and docs/plugin.md of the service say more. The parts, from the bottom up:

    requests      JSON over HTTPS, without redirects
    sign-in       OAuth 2.1: the system's browser, an authorization code, PKCE
    token store   the refresh token in a file or vault of its own, never in OBS's settings
    account       access tokens in memory, refreshed before they expire
    WebSocket     a client after RFC 6455
    rule          which scene belongs on air; pure, without OBS
    controller    all that waits for the network, in threads
    script        all that calls OBS, by a timer of OBS
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import ctypes
import hashlib
import hmac
import http.client
import http.server
import io
import json
import os
import queue
import random
import secrets
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import webbrowser

try:
    import obspython as obs
except ImportError:  # Tests import this file without OBS.
    obs = None

# The site fills in its own address when the script is downloaded from it.
DEFAULT_SERVICE = ""

CLIENT_ID = "obs-relay-control"
SCOPE = "ingests:read relay:read relay:control"
USER_AGENT = "relay-control-obs/1.0"
# The addresses that the service lets the browser come back to: http://127.0.0.1:PORT/callback
CALLBACK_PORTS = range(47420, 47430)
SIGN_IN_SECONDS = 120
REQUEST_SECONDS = 5.0
REPLY_BYTES_MAX = 1 << 20


# --- requests ---------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """The service has answered, but not with success."""

    def __init__(self, status: int, code: str, message: str, retry_after: float = 0):
        super().__init__(f"{status} {code}")
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status == 429 or self.status >= 500


class Unreachable(Exception):
    """No answer came. What the request asked for may have been done nevertheless."""


class SignedOut(Exception):
    """There is no sign-in, or it has ended."""


class Cancelled(Exception):
    """The script is being unloaded, or the user has changed their mind."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """No endpoint redirects, and a token must not follow to another address."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirects)


def check_address(url: str) -> str:
    """Accepts https:, and http: to this computer, so that a local start of the service works too."""
    with contextlib.suppress(ValueError):
        parts = urllib.parse.urlsplit(url)
        is_local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
        if parts.hostname and (parts.scheme == "https" or is_local):
            return url
    raise Refused(0, "invalid_address", "The address of the service must begin with https://")


def request_json(method, url, *, token=None, form=None, body=None, headers=None, seconds=REQUEST_SECONDS):
    """Sends one request. Returns the parsed JSON of a success, None without a body; raises Refused or Unreachable."""
    request = urllib.request.Request(check_address(url), method=method, headers={"User-Agent": USER_AGENT})
    request.add_header("Accept", "application/json")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    if token:
        # Not to be repeated at another address, whatever a later version of urllib does with redirects.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    if form is not None:
        request.data = urllib.parse.urlencode(form).encode()
    elif body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with opener.open(request, timeout=seconds) as reply:
            content = reply.read(REPLY_BYTES_MAX)
            return json.loads(content) if content else None
    except urllib.error.HTTPError as error:
        with error:
            raise refusal_of(error) from None
    # ValueError: what has answered is not the service, such as the sign-in page of a hotel.
    except (OSError, http.client.HTTPException, ValueError):
        raise Unreachable() from None


def refusal_of(error: urllib.error.HTTPError) -> Refused:
    """Reads both forms of errors: those of OAuth are flat, all others have a code and a message inside."""
    try:
        body = json.loads(error.read(REPLY_BYTES_MAX))
        inner = body["error"]
        nested = isinstance(inner, dict)
        code, message = (inner["code"], inner["message"]) if nested else (inner, body.get("error_description"))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError):
        code, message = "unknown", None
    after = error.headers.get("Retry-After", "")
    sentence = str(message or f"The service has answered {error.code}.")
    return Refused(error.code, str(code), sentence, float(after) if after.isdigit() else 0)


class Pauses:
    """Pauses between attempts in seconds: they double, and a random part keeps many clients apart."""

    def __init__(self, first=0.5, longest=30.0, rand=random.random):
        self.first, self.longest, self.rand = first, longest, rand
        self.reset()

    def reset(self):
        self.present = self.first

    def next(self) -> float:
        pause = self.present * (0.5 + self.rand())
        self.present = min(self.present * 2, self.longest)
        return pause


def repeat(work, wait, on_problem=lambda sentence: None, pauses=None):
    """Does `work` until it is answered, also over lost replies, limits and outages.

    `wait(seconds)` returns whether to give up. Raises Refused for an answer that will stay as it is.
    """
    pauses, has_failed = pauses or Pauses(), False
    while True:
        try:
            result = work()
            if has_failed:
                on_problem("")
            return result
        except Unreachable:
            on_problem("The service does not answer. Trying again…")
            pause = pauses.next()
        except Refused as refusal:
            if not refusal.is_passing:
                raise
            on_problem(refusal.message)
            pause = max(pauses.next(), refusal.retry_after * (1 + random.random() / 4))
        has_failed = True
        if wait(pause):
            raise Cancelled()


# --- sign-in ----------------------------------------------------------------------------------------------------------


def discover(service: str) -> dict:
    """Finds the endpoints from the address of the site alone."""
    try:
        document = request_json("GET", f"{service}/.well-known/irl-source-provider.json")
        if document["protocol_version"] != 1:
            raise Refused(0, "unsupported", "The service needs a newer version of this script. Download it again.")
        issuer, ingests = document["issuer"].rstrip("/"), document["ingests_endpoint"]
        metadata = request_json("GET", f"{issuer}/.well-known/openid-configuration")
        if metadata["issuer"].rstrip("/") != issuer:
            raise Refused(0, "invalid_issuer", "The service is not set up correctly.")
        return {
            "authorize": check_address(metadata["authorization_endpoint"]),
            "token": check_address(metadata["token_endpoint"]),
            "revoke": metadata.get("revocation_endpoint"),
            "api": check_address(ingests[: -len("/ingests")] if ingests.endswith("/ingests") else ingests),
        }
    except (KeyError, TypeError, AttributeError):
        raise Refused(0, "no_service", "The address is not that of a relay service.") from None


def code_challenge(verifier: str) -> str:
    """RFC 7636 with S256: only who has made the verifier can use the code that comes back."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class CallbackHandler(http.server.BaseHTTPRequestHandler):
    """Receives the browser when it comes back. Requests without the right state change nothing."""

    timeout = 5

    def do_GET(self):  # noqa: N802, the name that the standard library calls
        url = urllib.parse.urlsplit(self.path)
        answer = dict(urllib.parse.parse_qsl(url.query))
        is_ours = url.path == "/callback" and hmac.compare_digest(
            answer.get("state", "").encode(), self.server.state.encode()
        )
        if is_ours:
            self.server.answers.put(answer)
        text = "Return to OBS. You can close this page." if is_ours else "This page belongs to no sign-in."
        page = f"<!doctype html><meta charset=utf-8><title>OBS</title><p>{text}</p>".encode()
        self.send_response(200 if is_ours else 400)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        """Its lines would have the code in them."""


class CallbackServer(http.server.ThreadingHTTPServer):
    # On Windows the option lets two programs have the same port.
    allow_reuse_address = os.name == "posix"
    daemon_threads = True

    def __init__(self, address):
        super().__init__(address, CallbackHandler)
        self.state = secrets.token_hex(16)
        self.answers: queue.Queue = queue.Queue()

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def wait(self, is_over) -> dict:
        """Returns what the browser brings."""
        until = time.monotonic() + SIGN_IN_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(queue.Empty):
                return self.answers.get(timeout=0.1)
            if is_over():
                raise Cancelled()
        raise Refused(0, "timeout", "The sign-in took too long. Start it again.")


def listen_for_browser() -> CallbackServer:
    for port in CALLBACK_PORTS:
        with contextlib.suppress(OSError):
            return CallbackServer(("127.0.0.1", port))
    raise Refused(0, "no_port", "All ports for the sign-in are in use. Close other programs and try again.")


def sign_in(service: str, open_browser, is_over) -> dict:
    """Lets the user approve in the browser. Returns what the token store keeps and the first tokens."""
    places = discover(service)
    verifier = secrets.token_urlsafe(48)
    with listen_for_browser() as server:
        redirect_uri = f"http://127.0.0.1:{server.server_address[1]}/callback"
        query = {
            "response_type": "code",
            "client_id": CLIENT_ID,
            "redirect_uri": redirect_uri,
            "scope": SCOPE,
            "state": server.state,
            "code_challenge": code_challenge(verifier),
            "code_challenge_method": "S256",
        }
        open_browser(f"{places['authorize']}?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}")
        answer = server.wait(is_over)
    if "code" not in answer:
        raise Refused(0, answer.get("error", ""), "The sign-in was denied in the browser.")
    form = {"grant_type": "authorization_code", "code": answer["code"], "redirect_uri": redirect_uri}
    form.update(client_id=CLIENT_ID, code_verifier=verifier)
    return {"places": places, "tokens": request_json("POST", places["token"], form=form)}


# --- token store ------------------------------------------------------------------------------------------------------


def config_folder(platform=sys.platform, environment=os.environ) -> str:
    home = os.path.expanduser("~")
    if platform == "win32":
        base = environment.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    elif platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(base, "relay-control")


class Blob(ctypes.Structure):
    _fields_ = [("size", ctypes.c_ulong), ("data", ctypes.c_void_p)]


def dpapi(function: str, data: bytes) -> bytes:
    """Windows only: encrypts or decrypts for the present user with `CryptProtectData` or `CryptUnprotectData`."""
    content = ctypes.create_string_buffer(data, len(data))
    source, result = Blob(len(data), ctypes.cast(content, ctypes.c_void_p)), Blob()
    without_dialog = 1
    call = getattr(ctypes.windll.crypt32, function)
    if not call(ctypes.byref(source), None, None, None, None, without_dialog, ctypes.byref(result)):
        raise ctypes.WinError()
    try:
        return ctypes.string_at(result.data, result.size)
    finally:
        ctypes.windll.kernel32.LocalFree(ctypes.c_void_p(result.data))


class Vault:
    """The system's vault by its command line: Keychain of macOS, Secret Service of Linux. Secrets go through pipes."""

    def __init__(self, account: str, platform=sys.platform):
        label = "Relay Control for OBS"
        if platform == "darwin":
            place = ["-a", account, "-s", label]
            self.program, self.find = "security", ["find-generic-password", *place, "-w"]
            self.add, self.remove = ["-i"], ["delete-generic-password", *place]
            self.input = f'add-generic-password -U -a "{account}" -s "{label}" -w "%s"\n'
        else:
            place = ["application", "relay-control", "account", account]
            self.program, self.find = "secret-tool", ["lookup", *place]
            self.add, self.remove = ["store", f"--label={label}", *place], ["clear", *place]
            self.input = "%s"
        self.exists = platform != "win32" and shutil.which(self.program) is not None

    def run(self, arguments, text="") -> str:
        if not self.exists:
            return ""
        try:
            # A vault that is locked asks its user, who may not be there.
            done = subprocess.run([self.program, *arguments], input=text, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.SubprocessError):
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    def save(self, secret: str) -> bool:
        """Returns whether the vault has it, by reading it back: an interactive program reports few failures."""
        self.run(self.add, self.input % secret)
        return self.run(self.find) == secret

    def load(self) -> str:
        return self.run(self.find)

    def delete(self):
        self.run(self.remove)


class TokenStore:
    """Keeps the refresh token of one service, with the endpoints that it belongs to.

    OBS writes the settings of scripts into the scene collection, which people share. So the token lies in a file of its
    own that only its user can read (encrypted by Windows), or in the vault of the system, and nowhere else.
    """

    def __init__(self, service: str, folder: str | None = None, vault: Vault | None = None):
        name = hashlib.sha256(service.encode()).hexdigest()[:16]
        self.path = os.path.join(folder or config_folder(), f"{name}.token")
        self.vault = vault or Vault(name)

    def save(self, record: dict):
        data = json.dumps(record).encode()
        if self.vault.save(base64.b64encode(data).decode()):
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path)
            return
        folder = os.path.dirname(self.path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        # The file gets mode 0600 when it is made, and replaces the old one at once: a crash leaves no half of it.
        handle, temporary = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(dpapi("CryptProtectData", data) if sys.platform == "win32" else data)
        os.replace(temporary, self.path)

    def load(self) -> dict | None:
        try:
            with open(self.path, "rb") as file:
                data = file.read()
            return json.loads(dpapi("CryptUnprotectData", data) if sys.platform == "win32" else data)
        except FileNotFoundError:
            secret = self.vault.load()
        except (OSError, ValueError):
            return None
        try:
            return json.loads(base64.b64decode(secret)) if secret else None
        except ValueError:
            return None

    def delete(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path)
        self.vault.delete()

    @contextlib.contextmanager
    def lock(self):
        """Held by one process at a time: two OBS of one user share the token, which each refresh replaces."""
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        with open(f"{self.path}.lock", "a", encoding="utf-8") as file:
            if sys.platform == "win32":
                import msvcrt

                try:
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # Tries for ten seconds. Ends with the file.
                except OSError:
                    raise Unreachable() from None
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            yield


# --- account ----------------------------------------------------------------------------------------------------------


class Account:
    """The sign-in at one service. Its access token is in memory only. Only `invalid_grant` ends it."""

    def __init__(self, store: TokenStore, clock=time.monotonic):
        self.store, self.clock = store, clock
        self.mutex = threading.Lock()
        self.access_token, self.good_until = None, 0.0
        record = store.load()
        self.places = record["places"] if record else None

    def adopt(self, places: dict, tokens: dict):
        # Stored before it is used: the former one is gone at the service.
        self.store.save({"places": places, "refresh_token": tokens["refresh_token"]})
        self.places, self.access_token = places, tokens["access_token"]
        self.good_until = self.clock() + tokens.get("expires_in", 60) - 60

    def token(self, refused: str | None = None) -> str:
        """An access token that is good for a minute. `refused`: one that the service did not accept."""
        with self.mutex:
            if self.access_token and self.access_token != refused and self.clock() < self.good_until:
                return self.access_token
            with self.store.lock():
                record = self.store.load()  # Another OBS may have replaced it.
                if not record:
                    self.places = None
                    raise SignedOut()
                form = {"grant_type": "refresh_token", "refresh_token": record["refresh_token"], "client_id": CLIENT_ID}
                try:
                    self.adopt(record["places"], request_json("POST", record["places"]["token"], form=form))
                except Refused as refusal:
                    if refusal.code != "invalid_grant":
                        raise
                    self.forget()
                    raise SignedOut() from None
            return self.access_token

    def call(self, method: str, path: str, **options):
        """Calls the API. A token that is refused is replaced once."""
        token, places = self.token(), self.places
        if places is None:
            raise SignedOut()
        url = places["api"] + path
        try:
            return request_json(method, url, token=token, **options)
        except Refused as refusal:
            if refusal.status != 401:
                raise
        return request_json(method, url, token=self.token(refused=token), **options)

    def forget(self):
        self.store.delete()
        self.places, self.access_token = None, None

    def sign_out(self):
        """Ends the sign-in here at once, and at the service if it can be reached."""
        with self.mutex:
            record = self.store.load()
            self.forget()
        if record and record["places"]["revoke"]:
            form = {"token": record["refresh_token"], "token_type_hint": "refresh_token", "client_id": CLIENT_ID}
            with contextlib.suppress(Refused, Unreachable):
                request_json("POST", record["places"]["revoke"], form=form)


# --- WebSocket --------------------------------------------------------------------------------------------------------


class Closed(Exception):
    """The WebSocket was closed by either side, for the reason that the code says."""

    def __init__(self, code: int):
        super().__init__(str(code))
        self.code = code


class WebSocket:
    """A client of RFC 6455 that receives text. Raises Refused for an answer that is no handshake, and Unreachable."""

    CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
    GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    def __init__(self, url: str, protocol: str, token: str, silent_seconds=20.0, message_bytes_max=1 << 20):
        self.buffer, self.is_pinged, self.message_bytes_max = b"", False, message_bytes_max
        self.sending = threading.Lock()
        parts = urllib.parse.urlsplit(check_address(url))
        is_secure = parts.scheme == "https"
        try:
            address = (parts.hostname, parts.port or (443 if is_secure else 80))
            self.socket = socket.create_connection(address, REQUEST_SECONDS)
            if is_secure:
                context = ssl.create_default_context()
                self.socket = context.wrap_socket(self.socket, server_hostname=parts.hostname)
            self.shake_hands(parts, protocol, token)
            self.socket.settimeout(silent_seconds)
        except (OSError, ValueError, http.client.HTTPException):
            self.end()
            raise Unreachable() from None
        except Exception:
            self.end()
            raise

    def shake_hands(self, parts, protocol: str, token: str):
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {parts.path}?{parts.query} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            f"Sec-WebSocket-Protocol: {protocol}",
            f"Authorization: Bearer {token}",
            f"User-Agent: {USER_AGENT}",
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self.buffer:
            if len(self.buffer) > 16384:
                raise Unreachable()
            self.fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        status_line, _, fields = head.partition(b"\r\n")
        status, headers = int(status_line.split()[1]), http.client.parse_headers(io.BytesIO(fields + b"\r\n\r\n"))
        if status != 101:
            after = headers.get("Retry-After", "")
            raise Refused(status, "handshake", "", float(after) if after.isdigit() else 0)
        expected = base64.b64encode(hashlib.sha1((key + self.GUID).encode()).digest()).decode()
        if headers.get("Sec-WebSocket-Accept") != expected or headers.get("Sec-WebSocket-Protocol") != protocol:
            raise Unreachable()

    def receive(self) -> str:
        """Waits for the next message. Answers pings meanwhile, and pings when nothing comes for long."""
        message: bytes | None = None
        while True:
            opcode, is_final, payload = self.receive_frame(len(message or b""))
            if opcode == self.PING:
                self.send(self.PONG, payload)
            elif opcode == self.CLOSE:
                self.send(self.CLOSE, payload[:2])
                raise Closed(struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else 1005)
            elif opcode in (self.TEXT, self.CONTINUATION):
                if (opcode == self.CONTINUATION) != (message is not None):
                    self.fail(1002)
                message = (message or b"") + payload
                if is_final:
                    try:
                        return message.decode()
                    except UnicodeDecodeError:
                        self.fail(1007)
            elif opcode != self.PONG:
                self.fail(1003 if opcode == self.BINARY else 1002)

    def receive_frame(self, bytes_before: int):
        first, second = self.take(2)
        opcode, is_final, length = first & 0x0F, bool(first & 0x80), second & 0x7F
        # No extension was agreed on, servers do not mask, and control frames are short and whole.
        if first & 0x70 or second & 0x80 or (opcode >= 8 and (length > 125 or not is_final)):
            self.fail(1002)
        if length >= 126:
            form = ">H" if length == 126 else ">Q"
            (length,) = struct.unpack(form, self.take(struct.calcsize(form)))
        if bytes_before + length > self.message_bytes_max:
            self.fail(1009)
        return opcode, is_final, self.take(length)

    def take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            try:
                self.fill()
                self.is_pinged = False
            except socket.timeout:
                if self.is_pinged:
                    raise Unreachable() from None
                self.is_pinged = True
                self.send(self.PING, b"")
            except (OSError, ValueError):
                raise Unreachable() from None
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def fill(self):
        received = self.socket.recv(65536)
        if not received:
            raise ConnectionError()
        self.buffer += received

    def send(self, opcode: int, payload: bytes):
        """Sends one short frame. Clients mask each one with new random bytes."""
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
        try:
            with self.sending:
                self.socket.sendall(bytes([0x80 | opcode, 0x80 | len(payload)]) + mask + masked)
        except (OSError, ValueError):
            raise Unreachable() from None

    def fail(self, code: int):
        with contextlib.suppress(Unreachable):
            self.send(self.CLOSE, struct.pack(">H", code))
        raise Closed(code)

    def end(self):
        """Wakes a thread that receives, too."""
        held = getattr(self, "socket", None)
        if held is not None:
            with contextlib.suppress(OSError, ValueError):
                held.shutdown(socket.SHUT_RDWR)
            held.close()


# --- rule -------------------------------------------------------------------------------------------------------------

LIVE, WEAK, BACK = "live", "weak", "back"
SCENES_AFTER = {"stream_started": LIVE, "stream_recovered": LIVE, "stream_weak": WEAK}
SWITCH_SECONDS_MIN = 2.0
MEDIA_SECONDS_MAX = 3.0


class Streams:
    """What the service says about the sessions of the account and their streams."""

    def __init__(self):
        self.sessions: dict = {}  # By connection, the last one of each.
        self.events: dict = {}  # By session, its last stream event.
        self.unsure: set = set()  # Sessions whose relay was lost since their last event.
        self.received: set = set()  # Sessions that the present WebSocket has sent.
        self.is_known = False

    def opened(self):
        self.received.clear()

    def apply(self, message: dict):
        """Takes one message of the WebSocket. Unknown types are ignored: later versions may add some."""
        if message.get("type") == "session":
            self.received.add(message["session"]["session_id"])
            self.apply_session(message["session"])
        elif message.get("type") == "stream_event":
            self.events[message["session_id"]] = message["kind"]
            self.unsure.discard(message["session_id"])

    def apply_session(self, session: dict):
        connection, key = session["connection_id"], session["session_id"]
        held = self.sessions.get(connection)
        if session["state"] == "stopped":
            self.events.pop(key, None)
            if held and held["session_id"] != key:
                return  # Another session of the connection has begun.
        elif session["state"] == "grace" and session["reason"] == "health_lost":
            self.unsure.add(key)
        elif key in self.unsure and session["state"] == "active":
            self.unsure.discard(key)
            if session.get("detail") == "relay_replaced":
                self.events[key] = "unknown"  # Of the relay that is gone.
        self.sessions[connection] = session

    def apply_live(self, sessions: list):
        """Takes the list of all live sessions, requested after the WebSocket was opened."""
        for session in sessions:
            if session["session_id"] not in self.received:
                self.apply_session(session)
        live = {session["session_id"] for session in sessions} | self.received
        self.sessions = {name: held for name, held in self.sessions.items() if held["session_id"] in live}
        self.is_known = True

    def scene(self, connection: str) -> str | None:
        """Which scene belongs on air; None while that is unknown."""
        session = self.sessions.get(connection)
        if session is None:
            return BACK if self.is_known else None
        if session["state"] not in ("active", "grace") or session["reason"] == "health_lost":
            return BACK
        event = self.events.get(session["session_id"])
        if event == "unknown":
            return LIVE if (session.get("ingest") or {}).get("publishing") else BACK
        return SCENES_AFTER.get(event, BACK)


class MediaWatch:
    """Whether the Media Source has no picture after an end that it has noticed itself.

    OBS does not notice that a publisher is gone, only that the relay is. `PLAYING` alone says nothing, since a source
    that tries to connect says so too; the size is 0 until the first picture.
    """

    def __init__(self):
        self.ended_at: float | None = None

    def is_gone(self, now: float, has_ended: bool, has_picture: bool, is_back_soon: bool) -> bool:
        """A scene with the source stays for three seconds, “be right back” (`is_back_soon`) until the picture."""
        if has_ended:
            self.ended_at = now if self.ended_at is None else self.ended_at
        elif has_picture:
            self.ended_at = None
        return self.ended_at is not None and (is_back_soon or now - self.ended_at >= MEDIA_SECONDS_MAX)


class Switcher:
    """Decides when to switch: once for each change of what belongs on air, so that the user can switch in between.

    Never from a scene that is none of the three, and never twice within two seconds.
    """

    def __init__(self):
        self.wanted: str | None = None
        self.is_due = False
        self.switched_at = float("-inf")

    def want(self, scene: str | None):
        if scene is not None and scene != self.wanted:
            self.wanted, self.is_due = scene, True

    def next_scene(self, now: float, on_air: str, scenes: dict) -> str | None:
        """The name of the scene to switch to. `scenes` has the user's names; without a weak one the live one stays."""
        if not self.is_due or now - self.switched_at < SWITCH_SECONDS_MIN:
            return None
        self.is_due = False
        target = scenes.get(self.wanted) or (scenes.get(LIVE) if self.wanted == WEAK else "")
        if not target or target == on_air or on_air not in scenes.values():
            return None
        self.switched_at = now
        return target


# --- controller -------------------------------------------------------------------------------------------------------


class Choices:
    """What the user has set, as the controller needs it."""

    connection, region, starts, stops = "default", "", True, False


class Controller:
    """All that waits for the network, in threads of its own. `emit(name, value)` hands over what has happened."""

    def __init__(self, service: str, account: Account, choices: Choices, emit, open_browser=webbrowser.open):
        self.service, self.account, self.choices, self.emit = service, account, choices, emit
        self.open_browser = open_browser
        self.over, self.jobs, self.addressing = threading.Event(), {}, threading.Lock()
        self.socket: WebSocket | None = None
        self.wants_relay, self.unanswered, self.resolved, self.page = False, None, None, None

    @property
    def is_signed_in(self) -> bool:
        return self.account.places is not None

    def is_running(self, name: str) -> bool:
        return name in self.jobs and self.jobs[name].is_alive()

    def run(self, name: str | None, work):
        """Does work in a thread, unless work of this name is being done."""

        def guarded():
            try:
                work()
            except Cancelled:
                pass
            except SignedOut:
                self.emit("problem", "The sign-in has ended. Sign in again.")
            except Refused as refusal:
                self.emit("problem", refusal.message)
            except Unreachable:
                self.emit("problem", "The service does not answer. Try again.")
            except Exception as error:  # Its text may have secrets in it.
                self.emit("problem", f"The script has failed ({type(error).__name__}).")

        if name is None or not self.is_running(name):
            thread = threading.Thread(target=guarded, daemon=True)
            thread.start()
            if name is not None:
                self.jobs[name] = thread

    def repeat(self, work, wait=None):
        return repeat(work, wait or self.over.wait, lambda sentence: self.emit("problem", sentence))

    def begin(self):
        """At the start of OBS, and after a sign-in."""
        if self.is_signed_in:
            self.run("follow", self.follow)
            self.refresh_address()
            if self.choices.starts:
                self.start_relay()

    def sign_in(self):
        def open_page(url):
            self.page = url
            self.open_browser(url)

        def work():
            self.page = None
            self.emit("problem", "Approve the sign-in in your browser.")
            result = sign_in(self.service, open_page, self.over.is_set)
            self.account.adopt(result["places"], result["tokens"])
            self.emit("problem", "")
            self.begin()

        if self.is_running("sign_in") and self.page:  # The user has closed the page, and asks for it again.
            self.run(None, lambda: self.open_browser(self.page))
        self.run("sign_in", work)

    def sign_out(self):
        self.account.places = None
        if self.socket:
            self.socket.end()
        self.run("sign_out", self.account.sign_out)

    def start_relay(self):
        self.wants_relay = True
        self.run("start", self.start)

    def start(self):
        """Starts the relay, or finds the one that runs. A lost reply is repeated with the same key."""
        body = {"connection_id": self.choices.connection}
        if self.choices.region:
            body["region"] = self.choices.region
        if self.unanswered is None or self.unanswered[1] != body:
            self.unanswered = (str(uuid.uuid4()), body)
        options = {"body": body, "headers": {"Idempotency-Key": self.unanswered[0]}}

        def wait(seconds):
            return self.over.wait(seconds) or not self.wants_relay

        try:
            reply = self.repeat(lambda: self.account.call("POST", "/relay/start?view=dock", **options), wait)
        except Refused:
            self.unanswered = None
            raise
        self.unanswered = None
        self.emit("problem", "")
        self.emit("session", reply["session"])
        self.refresh_address()

    def stop_relay(self):
        self.wants_relay = False
        self.run("stop", lambda: self.repeat(self.stop))

    def stop(self, seconds=REQUEST_SECONDS):
        body = {"connection_id": self.choices.connection}
        try:
            self.account.call("POST", "/relay/stop?view=dock", body=body, seconds=seconds)
        except Refused as refusal:
            if refusal.code != "not_found":  # None runs.
                raise

    def refresh_address(self):
        """Looks for the address to play from, which may be another one after each change of the session."""

        def work():
            with self.addressing:
                ingests = self.repeat(lambda: self.account.call("GET", "/ingests"))["ingests"]
                self.emit("connections", [ingest["name"] for ingest in ingests])
                ids = [ingest["id"] for ingest in ingests if ingest["name"] == self.choices.connection]
                # The id changes with the address.
                if not ids or ids[0] == self.resolved:
                    return
                try:
                    path = f"/ingests/{urllib.parse.quote(ids[0], safe=':')}/url"
                    url = self.repeat(lambda: self.account.call("GET", path))["url"]
                except Refused as refusal:
                    if refusal.status == 404:  # Known once the relay runs.
                        return
                    raise
                self.resolved = ids[0]
                self.emit("address", url)

        self.run(None, work)

    def follow(self):
        """Keeps a WebSocket open. The access token ends after minutes, and the WebSocket with it: code 4401."""
        pauses, refused = Pauses(), None
        while not self.over.is_set() and self.is_signed_in:
            token, opened_at, pause = None, None, 0.0
            try:
                token = self.account.token(refused)
                self.socket = WebSocket(f"{self.account.places['api']}/relay/ws?events=1", "svc.relay.v1", token)
                opened_at = time.monotonic()
                self.emit("opened", None)
                self.run("live", self.read_live)
                while True:
                    self.emit("message", json.loads(self.socket.receive()))
            except (Unreachable, Closed, Refused, ValueError) as error:
                if getattr(error, "code", 0) == 4401 or getattr(error, "status", 0) == 401:
                    refused = token
                pause = getattr(error, "retry_after", 0.0)
            self.emit("closed", None)
            if opened_at is not None and time.monotonic() - opened_at > 10:
                pauses.reset()
                if refused == token:
                    continue
            self.over.wait(max(pauses.next(), pause))

    def read_live(self):
        self.emit("live", self.repeat(lambda: self.account.call("GET", "/relay/active?view=dock"))["sessions"])
        regions = self.repeat(lambda: self.account.call("GET", "/relay/manifest"))["regions"]
        self.emit("regions", [(region["region"], region["display_name"]) for region in regions])

    def close(self):
        """Ends all threads, without waiting for them."""
        self.over.set()
        if self.socket:
            self.socket.end()


class StopAtEnd:
    """Stops the relay when OBS ends, for which OBS waits two seconds at most.

    Scripts are also unloaded when the scene collection changes or the user reloads them. Only the end of Python shows
    that OBS ends. Python starts no threads then, so this one waits for it from the beginning. (A callback for events of
    the frontend would show it too, but with one OBS freezes when any script of the user switches scenes by a timer.)
    """

    def __init__(self, stop, seconds=1.8):
        self.stop, self.seconds, self.unloaded_at = stop, seconds, None
        self.is_ending, self.is_done = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.wait, daemon=True)
        self.thread.start()
        atexit.register(self.end)

    def wait(self):
        while not self.is_ending.wait(1):
            if self.unloaded_at is not None and time.monotonic() - self.unloaded_at > 10:
                return  # OBS goes on without this script.
        with contextlib.suppress(Exception):
            self.stop(self.seconds)
        self.is_done.set()

    def end(self):
        if self.thread.is_alive():
            self.is_ending.set()
            self.is_done.wait(self.seconds)


# --- script -----------------------------------------------------------------------------------------------------------

STATE_TEXTS = {
    "provisioning": "The relay is starting.",
    "active": "The relay is ready.",
    "grace": "The relay is ending.",
    "stopped": "The relay is off.",
}
EVENT_TEXTS = {
    "stream_started": "The stream is live.",
    "stream_recovered": "The stream is live.",
    "stream_weak": "The stream is weak.",
    "stream_lost": "The stream is lost.",
}
ACTIONS = {
    "sign_in": "Sign in",
    "sign_out": "Sign out",
    "start_relay": "Start the relay",
    "stop_relay": "Stop the relay",
    "add_source": "Create the Media Source",
}


class Script:
    """All that calls OBS. Threads put what happens into a queue, which a timer of OBS empties.

    OBS calls timers on its thread for graphics, with Python locked. What waits for the interface there freezes OBS as
    soon as the interface waits for Python, so `switch` goes another way.
    """

    def __init__(self):
        self.events: queue.Queue = queue.Queue()
        self.choices, self.streams, self.switcher, self.media = Choices(), Streams(), Switcher(), MediaWatch()
        self.service, self.source_name, self.scenes, self.switches = "", "", {}, False
        self.problem, self.is_open, self.address, self.is_source_wanted = "", False, None, False
        self.connections, self.regions, self.last_status, self.hotkeys = [], [], "", {}
        self.changed_at: float | None = None
        self.controller: Controller | None = None
        self.at_end: StopAtEnd | None = None

    def connect(self):
        """Uses the service of the settings, with the sign-in that is stored for it."""
        if self.controller:
            self.controller.close()
        emit = lambda name, value: self.events.put((name, value))  # noqa: E731
        self.streams, self.address = Streams(), None
        self.controller = Controller(self.service, Account(TokenStore(self.service)), self.choices, emit)
        self.controller.begin()

    def update(self, settings):
        get = obs.obs_data_get_string
        self.service = get(settings, "service").strip().rstrip("/")
        connection = get(settings, "connection").strip() or "default"
        if connection != self.choices.connection:
            self.choices.connection, self.changed_at = connection, time.monotonic()
        self.choices.region = get(settings, "region")
        self.choices.starts = obs.obs_data_get_bool(settings, "starts")
        self.choices.stops = obs.obs_data_get_bool(settings, "stops")
        self.switches = obs.obs_data_get_bool(settings, "switches")
        self.source_name = get(settings, "source")
        self.scenes = {scene: get(settings, f"scene_{scene}") for scene in (LIVE, WEAK, BACK)}

    def act(self, name: str):
        """A button or a hotkey."""
        if name == "sign_in":
            if self.controller.service != self.service:
                self.connect()
            self.controller.sign_in()
        elif name == "add_source":
            self.is_source_wanted = True
            self.events.put(("address", self.address))
        elif not self.controller.is_signed_in:
            self.problem = "Sign in first."
        else:
            getattr(self.controller, name)()

    def stop_at_end(self, seconds: float):
        if self.choices.stops and self.controller.is_signed_in:
            self.controller.stop(seconds)

    def tick(self):
        """Ten times a second."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.handle(*self.events.get_nowait())
        now = time.monotonic()
        if self.changed_at is not None and now - self.changed_at > 1:  # The user has stopped typing.
            self.changed_at, self.address = None, None
            self.controller.refresh_address()
        scene = self.streams.scene(self.choices.connection)
        is_gone = self.media.is_gone(now, *self.read_media(), self.switcher.wanted == BACK)
        self.switcher.want(BACK if is_gone and scene is not None else scene)
        if self.switches:
            self.switch(now)
        if self.status() != self.last_status:
            self.last_status = self.status()
            obs.script_log(obs.LOG_INFO, self.last_status.replace("\n", " "))

    def handle(self, name: str, value):
        if name == "problem":
            self.problem = value
        elif name in ("message", "session"):
            message = value if name == "message" else {"type": "session", "session": value}
            before = self.summary()
            self.streams.apply(message)
            if message.get("type") == "session" and self.summary() != before:
                self.controller.refresh_address()
        elif name in ("opened", "closed"):
            self.is_open = name == "opened"
            if self.is_open:
                self.streams.opened()
        elif name == "live":
            self.streams.apply_live(value)
        elif name == "address":
            self.address = value
            self.put_address()
        else:
            setattr(self, name, value)

    def session(self) -> dict | None:
        return self.streams.sessions.get(self.choices.connection)

    def summary(self):
        """Of the session: what its address may change with."""
        session = self.session()
        parts = ("session_id", "state", "reason", "detail", "relay_host_masked")
        return session and tuple(session.get(part) for part in parts)

    def status(self) -> str:
        """What is going on, in sentences."""
        if not self.controller or not self.controller.is_signed_in:
            return self.problem or "Signed out."
        session = self.session()
        lines = [self.problem, "" if self.is_open else "Connecting to the service…"]
        if session and session["reason"] == "health_lost" and session["state"] == "grace":
            lines.append("The relay has failed. Another one takes over.")
        else:
            lines.append(STATE_TEXTS.get(session["state"] if session else "stopped", ""))
        if session and session["state"] in ("active", "grace"):
            lines.append(EVENT_TEXTS.get(self.streams.events.get(session["session_id"]), "There is no stream."))
        return "\n".join(line for line in lines if line)

    def read_media(self) -> tuple[bool, bool]:
        source = obs.obs_get_source_by_name(self.source_name)
        if source is None:
            return False, True
        state, width = obs.obs_source_media_get_state(source), obs.obs_source_get_width(source)
        obs.obs_source_release(source)
        return state == obs.OBS_MEDIA_STATE_ENDED, width > 0

    def switch(self, now: float):
        present = obs.obs_frontend_get_current_scene()
        if present is None:
            return
        target = self.switcher.next_scene(now, obs.obs_source_get_name(present), self.scenes)
        obs.obs_source_release(present)
        scene = obs.obs_get_source_by_name(target) if target else None
        if scene is not None:
            obs.script_log(obs.LOG_INFO, f"Switching to {target}.")
            threading.Thread(target=self.set_scene, args=(scene,), daemon=True).start()

    def set_scene(self, scene):
        """Waits for the interface in a thread of its own, and calls OBS by ctypes, which unlocks Python meanwhile."""
        library = ctypes.CDLL("obs-frontend-api" if sys.platform == "win32" else None)
        library.obs_frontend_set_current_scene(ctypes.c_void_p(int(scene)))
        obs.obs_source_release(scene)

    def put_address(self):
        """Gives the Media Source its address, and creates it if the user has asked for that.

        OBS stores the address with its play key in the scene collection, as it does with the input of every source. The
        key can be revoked, and it can play only, never publish. The tokens of this script are not in there.
        """
        if self.address is None:
            if self.controller.is_signed_in:
                self.controller.refresh_address()
            return
        source = obs.obs_get_source_by_name(self.source_name)
        if source is not None:
            settings = obs.obs_source_get_settings(source)
            is_other = obs.obs_data_get_string(settings, "input") != self.address
            obs.obs_data_release(settings)
            if is_other and obs.obs_source_get_unversioned_id(source) == "ffmpeg_source":
                settings = self.source_settings()
                obs.obs_source_update(source, settings)
                obs.obs_data_release(settings)
            obs.obs_source_release(source)
        elif self.is_source_wanted:
            self.create_source()
        self.is_source_wanted = False

    def source_settings(self):
        settings = obs.obs_data_create()
        values = {
            "is_local_file": False,
            "input": self.address,
            "input_format": "",
            "ffmpeg_options": "analyzeduration=500000 probesize=50000",  # A first picture without a long look.
            "reconnect_delay_sec": 2,
            "buffering_mb": 1,
            "hw_decode": False,
            "close_when_inactive": False,
            "restart_on_activate": False,  # It goes on in the background, so the live scene is live at once.
            "clear_on_media_end": True,
        }
        for name, value in values.items():
            kind = {bool: obs.obs_data_set_bool, int: obs.obs_data_set_int, str: obs.obs_data_set_string}[type(value)]
            kind(settings, name, value)
        return settings

    def create_source(self):
        scene_source = obs.obs_get_source_by_name(self.scenes[LIVE]) if self.scenes[LIVE] else None
        scene_source = scene_source or obs.obs_frontend_get_current_scene()
        settings = self.source_settings()
        source = obs.obs_source_create("ffmpeg_source", self.source_name, settings, None)
        item = obs.obs_scene_add(obs.obs_scene_from_source(scene_source), source)
        # As large as the canvas, whatever the size of the stream is.
        video, bounds = obs.obs_video_info(), obs.vec2()
        if obs.obs_get_video_info(video):
            obs.vec2_set(bounds, video.base_width, video.base_height)
            obs.obs_sceneitem_set_bounds_type(item, obs.OBS_BOUNDS_SCALE_INNER)
            obs.obs_sceneitem_set_bounds(item, bounds)
        obs.obs_data_release(settings)
        obs.obs_source_release(source)
        obs.obs_source_release(scene_source)


script = Script()


def script_description():
    return "Starts your relay, plays its stream, and switches scenes when the stream is weak or gone."


def script_defaults(settings):
    obs.obs_data_set_default_string(settings, "service", DEFAULT_SERVICE)
    obs.obs_data_set_default_string(settings, "connection", "default")
    obs.obs_data_set_default_string(settings, "source", "Relay stream")
    obs.obs_data_set_default_bool(settings, "starts", True)


def script_update(settings):
    script.update(settings)


def script_load(settings):
    script.update(settings)
    script.connect()
    for name, text in ACTIONS.items():
        pressed = lambda is_pressed, name=name: script.act(name) if is_pressed else None  # noqa: E731
        script.hotkeys[name] = obs.obs_hotkey_register_frontend(f"relay_control.{name}", f"Relay: {text}", pressed)
        keys = obs.obs_data_get_array(settings, f"hotkey_{name}")
        obs.obs_hotkey_load(script.hotkeys[name], keys)
        obs.obs_data_array_release(keys)
    script.at_end = StopAtEnd(script.stop_at_end)
    obs.timer_add(script.tick, 100)


def script_save(settings):
    for name, hotkey in script.hotkeys.items():
        keys = obs.obs_hotkey_save(hotkey)
        obs.obs_data_set_array(settings, f"hotkey_{name}", keys)
        obs.obs_data_array_release(keys)


def script_unload():
    script.controller.close()
    script.at_end.unloaded_at = time.monotonic()


def script_properties():
    props = obs.obs_properties_create()
    obs.obs_properties_add_text(props, "status", script.status(), obs.OBS_TEXT_INFO)
    obs.obs_properties_add_button(props, "refresh", "Refresh the status", on_button(lambda: None))
    obs.obs_properties_add_text(props, "service", "Service", obs.OBS_TEXT_DEFAULT)
    for name, text in ACTIONS.items():
        obs.obs_properties_add_button(props, name, text, on_button(lambda name=name: script.act(name)))
    combo, text = obs.OBS_COMBO_TYPE_EDITABLE, obs.OBS_COMBO_FORMAT_STRING
    connections = obs.obs_properties_add_list(props, "connection", "Connection", combo, text)
    for name in dict.fromkeys([*script.connections, "default"]):
        obs.obs_property_list_add_string(connections, name, name)
    regions = obs.obs_properties_add_list(props, "region", "Region", obs.OBS_COMBO_TYPE_LIST, text)
    for region, label in [("", "The usual one"), ("auto", "Wherever there is room"), *script.regions]:
        obs.obs_property_list_add_string(regions, label, region)
    obs.obs_properties_add_bool(props, "starts", "Start the relay when OBS starts")
    obs.obs_properties_add_bool(props, "stops", "Stop the relay when OBS ends")
    obs.obs_properties_add_text(props, "source", "Name of the Media Source", obs.OBS_TEXT_DEFAULT)
    obs.obs_properties_add_bool(props, "switches", "Switch scenes")
    sources = obs.obs_frontend_get_scenes()
    for scene, label in [(LIVE, "Scene while live"), (WEAK, "Scene while weak"), (BACK, "Scene “be right back”")]:
        names = obs.obs_properties_add_list(props, f"scene_{scene}", label, obs.OBS_COMBO_TYPE_LIST, text)
        for name in ["", *(obs.obs_source_get_name(source) for source in sources or [])]:
            obs.obs_property_list_add_string(names, name or "(none)", name)
    obs.source_list_release(sources)
    return props


def on_button(work):
    def pressed(props, _):
        work()
        obs.obs_property_set_description(obs.obs_properties_get(props, "status"), script.status())
        return True  # Draws the properties again.

    return pressed
