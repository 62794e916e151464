"""Settings of a user in the web page, stored as text that only the page interprets."""

from fastapi import APIRouter

from determined.errors import BadRequest, PreconditionFailed
from determined_master.api.dependencies import DatabaseDep, Read, User, Write
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas import users as schemas
from determined_master.api.schemas.base import Empty
from determined_master.api.schemas.users import MAX_SETTINGS
from determined_master.users import repository

router = APIRouter(route_class=JsonRoute, prefix="/api/v1/users/setting", tags=["users"])
MAX_BYTES = 64 * 1024


@router.get("")
async def get_user_settings(user: User, session: Read) -> schemas.UserSettings:
    rows = await repository.settings(session, user.user_id)
    found = [schemas.UserWebSetting(key=row.key, storage_path=row.storage_path, value=row.value) for row in rows]
    return schemas.UserSettings(settings=found)


@router.post("")
async def post_user_settings(body: schemas.UserSettings, user: User, database: DatabaseDep) -> Empty:
    """The key of a setting is its path and key."""
    wanted: dict[str, repository.Setting] = {}
    for setting in body.settings:
        for name, text in setting.model_dump(by_alias=True).items():
            if len(text.encode()) > MAX_BYTES or "\0" in text:
                raise BadRequest(f"a setting's {name} has at most {MAX_BYTES} bytes and no NUL characters")
        one = repository.Setting(setting.storage_path, setting.key, setting.value)
        wanted[one.digest] = one
    async with database.write() as session:
        stored = await repository.setting_digests(session, user.user_id)
        if len(stored | wanted.keys()) > MAX_SETTINGS:
            raise PreconditionFailed(f"a user can have at most {MAX_SETTINGS} settings")
        await repository.put_settings(session, user.user_id, wanted)
    return Empty()


@router.post("/reset")
async def reset_user_settings(user: User, session: Write) -> Empty:
    await repository.drop_settings(session, user.user_id)
    return Empty()
