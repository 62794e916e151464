"""Tables of users, sessions, workspaces, projects and user settings."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from determined_master.db.models.base import Base, BigId


class UserRow(Base):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    username: Mapped[str] = mapped_column(String(255), unique=True)
    display_name: Mapped[str] = mapped_column(String(255), default="")
    password_hash: Mapped[str] = mapped_column(String(255), default="")
    admin: Mapped[bool] = mapped_column(default=False)
    active: Mapped[bool] = mapped_column(default=True)
    remote: Mapped[bool] = mapped_column(default=False)
    agent_user_group: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """``agent_uid``, ``agent_user``, ``agent_gid``, ``agent_group``: identity of this user's tasks on agents."""
    modified_at: Mapped[datetime]
    last_auth_at: Mapped[datetime | None]


class SessionRow(Base):
    """A sign-in. Only the hash of its token is stored."""

    __tablename__ = "sessions"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class SignInLinkRow(Base):
    """A one-time sign-in link. Only the hash of its token is stored; used links are deleted."""

    __tablename__ = "sign_in_links"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class WorkspaceRow(Base):
    __tablename__ = "workspaces"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(255), unique=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    archived: Mapped[bool] = mapped_column(default=False)
    immutable: Mapped[bool] = mapped_column(default=False)


class ProjectRow(Base):
    __tablename__ = "projects"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    name: Mapped[str] = mapped_column(String(255))
    key: Mapped[str] = mapped_column(String(16), default="")
    description: Mapped[str] = mapped_column(String, default="")
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    archived: Mapped[bool] = mapped_column(default=False)
    immutable: Mapped[bool] = mapped_column(default=False)


class UserSettingRow(Base):
    """A setting of a user in the web page."""

    __tablename__ = "user_settings"

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Hash of path and key, which may be too long for a database key."""
    storage_path: Mapped[str] = mapped_column(Text)
    key: Mapped[str] = mapped_column(Text)
    value: Mapped[str] = mapped_column(Text)
