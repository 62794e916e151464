"""What a user has set in the web page, kept as words that the page alone understands."""

from fastapi import APIRouter

from determined.errors import NotImplementedYet
from determined_master.auth import User
from determined_master.dependencies import Read, Write
from determined_master.users import wire
from determined_master.wire.model import Empty

router = APIRouter(prefix="/api/v1/users/setting", tags=["users"])


@router.get("")
async def get_user_settings(user: User, session: Read) -> wire.UserSettings:
    raise NotImplementedYet("not yet")


@router.post("")
async def post_user_settings(body: wire.UserSettings, user: User, session: Write) -> Empty:
    raise NotImplementedYet("not yet")


@router.post("/reset")
async def reset_user_settings(user: User, session: Write) -> Empty:
    raise NotImplementedYet("not yet")
