"""A site on 127.0.0.1 for members only: who is not logged in gets a form where the page was, or a refusal.

``/login`` is the form, with a token that it has to be sent with. It sets a cookie that is good for so many pages. What does not start with
``/login`` is for members.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from urllib.parse import parse_qs

from misbehaving_site import MisbehavingSite

FORM = '<form method="post" action="/login"><input name="user"><input type="hidden" name="token" value="{}"></form>'


class MemberSite(MisbehavingSite):
    """Context manager; serves while it is open.

    Attributes
    ----------
    pages_a_session : int
        Pages after which a session ends.
    refusal : int
        Status of answers to those who are not logged in; 200: the form.
    knows : str
        The user that may log in.
    forbidden : str
        Path that nobody gets.
    served : Counter
        Pages that members got, by session.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pages_a_session = 1_000_000
        self.refusal = 200
        self.knows = "me"
        self.forbidden = ""
        self.served: Counter[str] = Counter()
        #: Of those who were not logged in.
        self.refused: list[str] = []
        self.sessions = 0
        self._tokens = 0

    async def _answer(self, path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        cookies = dict(pair.strip().split("=", 1) for pair in headers.get("cookie", "").split(";") if "=" in pair)
        status, text, extra = 200, "", ""
        if path == "/login":
            fetch = self.fetches[-1]
            said = parse_qs(fetch.body.decode())
            if fetch.method == "POST" and said.get("user") == [self.knows] and said.get("token") == [cookies.get("form")]:
                self.sessions += 1
                text, extra = "<p>welcome</p>", f"Set-Cookie: session={self.sessions}; Path=/\r\n"
                self.served[str(self.sessions)] = 0
            else:
                self._tokens += 1
                text, extra = FORM.format(self._tokens), f"Set-Cookie: form={self._tokens}; Path=/\r\n"
        else:
            session = cookies.get("session", "")
            if session in self.served and self.served[session] < self.pages_a_session and path != self.forbidden:
                self.served[session] += 1
                text = f"<p>page {path}</p><p>for members</p>"
            else:
                self.refused.append(path)
                status, text = self.refusal, FORM.format("")
        writer.write(f"HTTP/1.1 {status} x\r\nContent-Type: text/html\r\n{extra}Content-Length: {len(text)}\r\n\r\n{text}".encode())
        return True
