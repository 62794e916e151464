"""Signing in from a browser, by a link that opens once or by a password; signing out; who is signed in."""

from fastapi import APIRouter, Request, Response

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone, User
from determined_master.dependencies import TheMaster
from determined_master.web import wire
from determined_master.wire.model import Empty

router = APIRouter(prefix="/detent", tags=["page"])


@router.post("/sign-in/links")
async def make_sign_in_link(body: wire.SignInLinkBody, request: Request, master: TheMaster) -> wire.SignInLink:
    raise NotImplementedYet


@router.post("/sign-in")
async def sign_in(body: wire.SignInBody, request: Request, response: Response, master: TheMaster) -> wire.SignInAnswer:
    raise NotImplementedYet


@router.post("/sign-out")
async def sign_out(user: User, request: Request, response: Response, master: TheMaster) -> Empty:
    raise NotImplementedYet


@router.get("/session")
async def get_session(principal: Anyone, master: TheMaster) -> wire.PageSession:
    raise NotImplementedYet
