"""The configuration, from the file and the environment: one class per section.

The prose under each field is the configuration reference (docs are made of it).
A key is found in this order: VOLTAIRE_SECTION__KEY, the file, the default.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeGuard, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX = "VOLTAIRE_"
SECRETS = {"token", "api_key", "secret"}
MACHINE = Path("/etc/voltaire/config.toml")
OF_THE_MACHINE = (
    "Voltaire is installed here for the machine: use sudo, or, for a Voltaire of your own, "
    "`voltaire setup`; members of the group voltaire may run `voltaire status`."
)
# Variables of tables whose keys are names that the owner gives: what follows is not checked.
NAMED_TABLES = tuple(
    f"{PREFIX}{key}__"
    for key in (
        "AGENT__REPOS",
        "AGENT__DOCUMENTS",
        "AGENT__MAIL",
        "AGENT__MCP",
        "AGENT__CALENDAR",
        "PAGE__HOOKS",
        "PAGE__CLIENTS",
    )
)


class ConfigurationError(Exception):
    """The configuration is invalid. `str` is one sentence: the key, what is wrong with it, the value unless secret."""


class Section(BaseModel):
    """Base of the sections. Defaults are made by model_construct: building a validator for each, beside the one
    of Settings that contains it, would cost some milliseconds at every start."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _text_as_list(cls, value: object, field: ValidationInfo) -> object:
        """A list in an environment variable is JSON or separated by commas."""
        annotation = cls.model_fields[str(field.field_name)].annotation
        if not isinstance(value, str) or get_origin(annotation) not in (list, dict):
            return value
        if value.lstrip().startswith(("[", "{")):
            return json.loads(value)
        return [part.strip() for part in value.split(",") if part.strip()]


def matching(pattern: str, why: str) -> AfterValidator:
    """Requires that the whole text match the pattern; `why` completes "KEY: ..."."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(why)
        return text

    return AfterValidator(check)


def known_language(code: str) -> str:
    from agent.language import languages

    if code not in languages():
        raise ValueError(f"not one of {', '.join(languages())}")
    return code


def host_entries(entries: list[str]) -> list[str]:
    from agent.sandbox.hosts import ListedHost

    for entry in entries:
        ListedHost.parse(entry)
    return entries


def auto_or_known_language(code: str) -> str:
    return code if code == "auto" else known_language(code)


Language = Annotated[str, AfterValidator(known_language)]
HostEntries = Annotated[list[str], AfterValidator(host_entries)]
ADDRESS = r"(https?://[^/\s]+(?s:.*))?"  # or nothing
SECURE = r"(https://[^/\s]+\S*|http://(127\.0\.0\.1|localhost)[:/]\S*)?"


class TelegramSection(Section):
    token: SecretStr = SecretStr("")
    """The bot's token from @BotFather. Better in a file of its own: `token_file`."""
    token_file: Path | None = None
    """A file that holds the token and nothing else."""
    base_url: str = "https://api.telegram.org"
    """Any Bot API server; your own one lifts the limits on file sizes, and speaks to Telegram like the usual one."""
    owners: list[int] = []
    """Numeric Telegram ids of those who may approve, pair others and configure."""
    allow: list[int] = []
    """Users and groups (negative ids) that may talk. Others may ask to be paired."""
    groups: Literal["mention", "all", "off"] = "mention"
    """What is answered in groups. "mention": messages that mention the bot or reply to it; "all": every message; "off": none."""
    reactions: Literal["done", "seen", "off"] = "done"
    """The bot's reactions to a message. "done": 👀 once it is stored, then 👌 or 😢 once it is answered or has failed; "seen": 👀 alone; "off": none."""
    rich_messages: bool = False
    """Send answers with tables or headings as rich messages (Bot API 10.1), laid out by the app. Some apps show nothing of them yet."""
    language: Annotated[str, AfterValidator(auto_or_known_language)] = "auto"
    """Language of the bot's fixed texts: "auto" is each sender's own, as their Telegram says, where it is one of English (en), German (de), Spanish (es), French (fr), Russian (ru) and Chinese (zh); else one of these for all. /settings changes it for a chat. docs/languages.md tells how to add one."""
    webhook_url: str = ""
    """Public HTTPS address for a webhook; empty: long polling."""
    webhook_listen: str = "127.0.0.1:8443"
    """Where the webhook server listens, behind your reverse proxy."""


class MatrixSection(Section):
    homeserver: str = ""
    """Address of the bot's homeserver, such as "https://example.org"; empty: no Matrix."""
    user: str = Field("", pattern=r"^(@[^:\s]+:\S+)?$")
    """The bot's account, such as "@voltaire:example.org"."""
    password_file: Path | None = None
    """A file that holds the account's password. It is used once; then the state folder holds the session."""
    token_file: Path | None = None
    """In place of the password: an access token that no other program uses."""
    owners: list[str] = []
    """Accounts of those who may approve, let others in and configure."""
    allow: list[str] = []
    """Accounts and rooms ("!id") that may talk, and whose invitations are accepted."""
    groups: Literal["mention", "all", "off"] = "mention"
    """What is answered in rooms of more than two. "mention": messages that mention the bot or reply to it; "all": every message; "off": none."""
    language: Language = "en"
    """Language of the bot's fixed texts: en, de, es, fr, ru or zh. /settings changes it for a room."""


class SandboxSection(Section):
    network: bool = False
    """Let tools reach HTTP(S) through a proxy that knows only `allow_hosts`."""
    allow_hosts: HostEntries = []
    """Hosts that the proxy lets through, for reading (GET and HEAD): "docs.python.org", "*.example.org:8443"; a host with a private address stays refused. A method and a path give more, or less: "POST api.example.org/v1/", "* api.example.org". Of TLS the proxy sees no more than the host, so a host without a path is open to what a command sends by TLS."""
    memory_mib: int = Field(2048, ge=64)
    """Memory of one command or tool call, in MiB."""
    pids: int = Field(256, ge=16)
    """Processes of one command or tool call."""
    disk_mib: int = Field(1024, ge=16)
    """Size of a chat's workspace, in MiB."""
    files: int = Field(50_000, ge=100)
    """Files in a chat's workspace."""
    command_seconds: int = Field(120, ge=1)
    """Time of one command unless the model asks for another."""
    output_kib: int = Field(8, ge=1)
    """Output that the model sees of one call; never more than 1/8 of the window."""
    undo_mib: int = Field(512, ge=0)
    """Size of what is kept beside a chat's workspace so that /undo can take back a turn's changes, in MiB; the oldest turns go first, 0: nothing is kept."""


class BudgetsSection(Section):
    """Per chat and day; beyond a budget an owner is asked."""

    calls: int = Field(2000, ge=0)
    """Tool calls of a chat in a day, before an owner is asked; 0 or "none", here and below: without limit."""
    out_mib: int = Field(1024, ge=0)
    """MiB that commands send to hosts, and that are sent as files."""
    new_hosts: int = Field(200, ge=0)
    """Hosts that the chat was never connected to."""
    files: int = Field(20_000, ge=0)
    """Files that tools and commands write."""
    jobs: int = Field(50, ge=0)
    """Jobs that the model plans."""

    @field_validator("*", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return 0 if value == "none" else value


class RepoSection(Section):
    path: Path
    """Where the repository is on this machine."""
    write: bool = False
    """Whether the agent may change its files, and commit, which asks first; nothing else changes its .git."""
    mine: bool = False
    """Whether nobody but you writes what is in it. What others wrote counts as a stranger's text: a chat that has read it asks before it keeps or sends anything."""
    fetch: bool = False
    """Before a summary, fetch what its origin has (public HTTPS, a host of `allow_hosts`)."""


class WebSection(Section):
    search: Literal["", "searxng", "brave", "kagi", "tavily"] = ""
    """What `web search` asks: a SearXNG of yours at `search_url`, or Brave, Kagi or Tavily with a key of yours. Empty: SearXNG where there is a `search_url`, else there is no search. docs/web.md has all that it takes; `voltaire setup search` asks for it."""
    search_url: Annotated[
        str, matching(ADDRESS, "not an address such as http://127.0.0.1:8888")
    ] = ""
    """Where your SearXNG is, such as "http://127.0.0.1:8888"."""
    search_key_file: Path | None = None
    """A file that holds your key for Brave, Kagi or Tavily, readable to you alone."""
    read: Literal["seen", "ask", "never"] = "seen"
    """Which addresses `web read` opens without approval. "seen": only those in a person's messages or in search results; "ask": none but those of watches that a person planned; "never": reading the web is off."""
    render: bool = False
    """Whether `web read --render` may run the scripts of pages, in this machine's Chromium (docs/web.md)."""

    @model_validator(mode="after")
    def _whole(self) -> "WebSection":
        if (self.search in ("", "searxng")) == bool(self.search_key_file):
            raise ValueError("search_key_file is for brave, kagi and tavily, which need it")
        return self


class McpSecretSection(Section):
    file: str
    """Holds the secret: one word, such as an API key."""
    host: Annotated[
        str,
        matching(
            r"[a-z0-9.-]+(:\d{1,5})?", "not one host such as api.example.com, in small letters"
        ),
    ]
    """The only host that gets it, by HTTPS, such as "api.example.com" (":PORT" for another than 443); `network` must have it."""
    header: Annotated[
        str, matching(r"[A-Za-z0-9-]+", "not the name of a header such as Authorization")
    ] = "Authorization"
    """The only header of a request in which the placeholder becomes the secret."""


class McpSection(Section):
    command: list[str] = []
    """The server's program and its arguments, run in a sandbox of its own (docs/mcp.md); or `url`."""
    url: Annotated[str, matching(ADDRESS, "not an address such as https://mcp.example.org/mcp")] = (
        ""
    )
    """Address of a server that somebody else runs (streamable HTTP), such as "https://mcp.example.org/mcp"."""
    env_file: str = ""
    """A file of KEY=VALUE lines for this server alone: variables of its program, or headers of requests to `url`."""
    network: HostEntries = []
    """Hosts that its program may reach, as in `allow_hosts`. Where an entry names a method or a path, and where a secret is bound, requests by HTTPS are held to that too; an entry without a method then means reading, `"* HOST"` everything."""
    folders: list[str] = []
    """Folders of this machine that it sees at /repos/NAME, read-only unless they end in ":rw"."""
    allow: list[str] = []
    """Its tools that never ask. All others ask at each call, or once in a chat; those that say that they destroy, always."""
    tools: list[str] = []
    """Its tools that every prompt lists as tools of their own, for models that need it; of one server alone, flat arguments alone, and within the 1,500 tokens of the fixed prefix. An owner allows them before (`voltaire mcp test NAME`)."""
    secrets: dict[str, McpSecretSection] = {}
    """Secrets that its program never sees, by the names of its variables: it gets placeholders, and the proxy puts the secret into requests (docs/mcp.md)."""
    client_id: str = ""
    """The OAuth client id with which an owner signs in to `url`, if you have registered one there; empty: Voltaire registers itself."""
    client_secret_file: str = ""
    """Holds the secret that belongs to `client_id`, if there is one."""
    callback_port: int = Field(0, ge=0, le=65535)
    """The port of the redirect address that you have registered, http://127.0.0.1:PORT/callback; 0: any, where the server does not compare it."""

    @model_validator(mode="after")
    def _either(self) -> "McpSection":
        if bool(self.command) == bool(self.url):
            raise ValueError("needs command or url, and not both")
        if self.secrets and self.url:
            raise ValueError("secrets are for a command; the headers of a url stand in env_file")
        if self.client_id and not self.url:
            raise ValueError("client_id is for a url; a command has no sign-in")
        if (self.client_secret_file or self.callback_port) and not self.client_id:
            raise ValueError("client_secret_file and callback_port belong to a client_id")
        if not self.secrets:
            return self
        from agent.sandbox.hosts import ListedHost

        for name, secret in self.secrets.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise ValueError(f"{name!r} is no name of a variable, such as API_TOKEN")
            host, _, port = secret.host.partition(":")
            if not any(ListedHost.parse(e).names(host, int(port or 443)) for e in self.network):
                raise ValueError(f"network lacks {secret.host}, the host of the secret {name}")
        return self


class MailSection(Section):
    imap: Annotated[
        str, matching(r"imaps?://[^\s/@]+", "not an address such as imaps://imap.example.org")
    ]
    """Where the mail is: "imaps://HOST" (TLS), or "imap://HOST" (STARTTLS; unencrypted only on this machine)."""
    smtp: Annotated[
        str, matching(r"(smtps?://[^\s/@]+)?", "not an address such as smtps://smtp.example.org")
    ] = ""
    """Where letters are handed over: "smtps://HOST" (TLS) or "smtp://HOST:587" (STARTTLS); empty: the account cannot send."""
    user: str
    """The name to sign in with, as the servers know it."""
    password_file: str = ""
    """Holds the password, or one for programs alone where the provider gives such; it never enters the sandbox. Or `client_id`."""
    client_id: str = ""
    """In place of the password: the OAuth client id that you have registered with the provider, where an owner signs in once (`voltaire setup mail NAME`); docs/mail.md has an example."""
    client_secret_file: str = ""
    """Holds the secret that belongs to `client_id`, if there is one."""
    device_url: Annotated[
        str, matching(SECURE, "not an address such as https://login.example.org/devicecode")
    ] = ""
    """The provider's device authorization endpoint (RFC 8628)."""
    token_url: Annotated[
        str, matching(SECURE, "not an address such as https://login.example.org/token")
    ] = ""
    """Its token endpoint."""
    scope: str = ""
    """What is asked for there: IMAP, SMTP, and a refresh token."""
    sender: str = ""
    """The address that letters come from, such as "Anna <anna@example.org>"; empty: `user`."""
    folders: list[str] = Field(["INBOX"], min_length=1)
    """The folders that `mail list` and `mail search` look through."""

    @model_validator(mode="after")
    def _either(self) -> "MailSection":
        if bool(self.password_file) == bool(self.client_id):
            raise ValueError("needs password_file or client_id, and not both")
        if bool(self.client_id) != bool(self.device_url and self.token_url):
            raise ValueError("client_id, device_url and token_url belong together")
        return self


class CalendarSection(Section):
    url: Annotated[
        str,
        matching(r"https?://[^/\s]\S*", "not an address such as https://cloud.example.org/dav/"),
    ]
    """The CalDAV server's address, whose calendars are all read, or that of one calendar. Reading asks once a chat, a change by itself."""
    user: str = ""
    """The name to sign in with; empty: none, as for a public calendar."""
    password_file: str = ""
    """Holds the password, best one for this program alone, where the server gives such."""
    remind: str = Field("", pattern=r"^(own|[1-9]\d{0,2}[mh]|[1-9]\d?d)?$")
    """How long before an entry begins it is told, such as "15m", "2h" or "1d"; "own": at the times of its own alarms; empty: not at all."""
    remind_chat: str = ""
    """The chat that is told, such as "tg:111"; empty: the owners' chats that get alerts."""


class NightSection(Section):
    hours: str = Field("01:00-06:00", pattern=r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$")
    """When messages with a 🌙 and those of /tonight are done, in the agent's time zone; at its end the best answers are told."""
    attempts: int = Field(5, ge=1, le=5)
    """How often each is done."""
    most_celsius: float = 70
    """No attempt begins while a card's core or memory is hotter."""
    price_file: Path | None = None
    """A file with the price of a kilowatt-hour at this hour, which a script of yours keeps up to date."""
    most_price: float = 0
    """With `price_file`: no attempt begins while the price is higher, or cannot be read."""


class AgentSection(Section):
    timezone: str = "UTC"
    """IANA name; also TZ in the sandbox."""
    max_tool_calls: int = Field(24, ge=1)
    """Tool calls in one turn; then the model must answer with what it has."""
    turn_seconds: int = Field(1800, ge=10)
    """The longest that a turn may take."""
    instructions: Path | None = None
    """A file with standing orders for every chat, such as a name, a tone, rules of the house: at most 1,200 bytes (about 300 tokens), which end the system text. Read when the bot starts; it permits nothing that asks otherwise."""
    tools: list[str] = []
    """Names of the tools to offer; empty: the whole default set."""
    read_ahead: bool = True
    """After a turn, while nobody waits, let the server read what the next message's prompt begins with, where the model's template changes what was read. `voltaire status` shows what that costs."""
    quiet_hours: str = ""
    """When the agent does not write first, such as "22:00-07:00"."""
    night: NightSection = NightSection.model_construct()
    sandbox: SandboxSection = SandboxSection.model_construct()
    budgets: BudgetsSection = BudgetsSection.model_construct()
    web: WebSection = WebSection.model_construct()
    repos: dict[str, RepoSection] = {}
    """Repositories that the agent may see, at /repos/NAME."""
    skills: list[Path] = []
    """Folders that hold skills (folders with a SKILL.md); `voltaire skills add NAME` shows one and adds it."""
    documents: dict[str, Path] = {}
    """Folders whose documents every chat may search, by name (`handbook = "/srv/handbook"`): PDF, Word, OpenDocument, EPUB, HTML, Markdown, text, CSV, mail (.eml), source."""
    mcp: dict[str, McpSection] = {}
    """Servers of tools that others wrote (MCP), by the names that the agent knows them by."""
    mail: dict[str, MailSection] = {}
    """Mail accounts by name (docs/mail.md)."""
    calendar: dict[str, CalendarSection] = {}
    """Accounts on CalDAV servers, by name, for `calendar` (docs/calendar.md)."""
    embedding_url: str = ""
    """A server with /v1/embeddings, for recall and documents by meaning; empty: by words alone."""
    transcribe_url: str = ""
    """A Whisper server in OpenAI's form, for voice messages, where the model itself does not hear; empty: whisper.cpp where it is installed (docs/voice.md)."""

    @field_validator("documents")
    @classmethod
    def _folder_names(cls, folders: dict[str, Path]) -> dict[str, Path]:
        from agent.sandbox.limits import REPO_NAME

        for name, path in folders.items():
            if not REPO_NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} cannot be the name of a folder: letters, digits, - and _ can"
                )
            if not path.is_absolute():
                raise ValueError(f"{name} must be a whole path, from / on")
        return folders

    @field_validator("mcp", "mail", "calendar")
    @classmethod
    def _names(cls, sections: dict[str, Section]) -> dict[str, Section]:
        for name in sections:
            if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", name):
                raise ValueError(f"{name!r} is no name of small letters, digits, - and _")
        return sections

    @field_validator("mcp")
    @classmethod
    def _one_listed(cls, servers: dict[str, McpSection]) -> dict[str, McpSection]:
        if len(listed := [name for name, each in servers.items() if each.tools]) > 1:
            raise ValueError(f"only one server may have tools, not {' and '.join(listed)}")
        return servers

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(name)
        except (OSError, ValueError, KeyError):
            raise ValueError("not a time zone of this machine, such as Europe/Paris") from None
        return name


class ScheduleSection(Section):
    at: str = Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")
    """Time of day, HH:MM, in the agent's time zone."""
    profile: str
    """The profile from then on."""
    job: int = 0
    """The number of the job that wrote this entry; 0: you wrote it."""


class BackendSection(Section):
    kind: Literal["managed", "external"] = "managed"
    """managed: Voltaire runs llama-server. external: use the server at `url`."""
    profile: str = "pocket"
    """Which model and flags at a start, until `voltaire model use` chooses others; `voltaire model list` shows them."""
    embedding: str = ""
    """A second llama-server, for search by meaning: `voltaire model list --embedding` shows which; or a GGUF. Empty: none."""
    server: str = "auto"
    """Path of llama-server; auto: what `voltaire server get` or `voltaire server build` has made, else the one on PATH, else the embedded one."""
    socket: str = ""
    """Control socket; empty: state.dir/run/backend.sock."""
    url: list[str] = ["http://127.0.0.1:8080", "http://127.0.0.1:9931"]
    """External: any OpenAI-compatible server, or several in order of preference. llama-server listens at port 8080, later versions, as announced, at 9931."""
    model: str = ""
    """External: the name to ask for; empty: the first that the server lists."""
    context: int = Field(0, ge=0)
    """External: the window in tokens; 0: what the server tells, else 8192."""
    api_key: SecretStr = SecretStr("")
    """External: the key, if the server wants one."""
    vision: Literal["auto"] | bool = "auto"
    """External: whether the model takes pictures; auto: the server is asked, or tried with a tiny one when the first picture comes."""
    connect_seconds: float = Field(10, gt=0)
    """How long to try to reach an external server."""
    warn_celsius: int = 80
    """Temperature of core or memory at which the owner is warned."""
    hold_celsius: int = 84
    """Temperature at which new work is held."""
    resume_celsius: int = 75
    """Temperature at which work goes on."""
    price_kwh: float = Field(0, ge=0)
    """Price of a kilowatt-hour, for the daily digest, the night shift and the owner's page."""
    local_port: int = Field(0, ge=0, le=65535)
    """A fixed loopback port for other local programs; 0: none."""
    local_key: SecretStr = SecretStr("")
    """The key that those programs must send."""
    saved_prompts_mib: int = Field(4096, ge=0)
    """How much of the disk the saved prompts of chats may take, and never more than a quarter of what is free; 0: none are saved."""
    lend_to_others: bool = False
    """Unload the model while another program that began after it computes on the card, as `/gpu lend` does for a time; not where NVML does not show processes, as in most containers."""
    urgent_model: str = ""
    """While the card is lent: the small profile or GGUF that answers `/urgent WORDS` on the processor, from these words alone; empty: none."""
    schedule: list[ScheduleSection] = []
    """Profiles by time of day."""


class HookSection(Section):
    job: int = Field(ge=1)
    """The number of the job that it runs (`voltaire jobs list`)."""
    secret_file: Path
    """A file with the secret that its callers know, readable to you alone: `Authorization: Bearer SECRET`, GitLab's token, or a signature as of GitHub and Gitea."""


class ClientSection(Section):
    key_file: Path
    """A file with the key that the client sends (`Authorization: Bearer KEY`), readable to you alone, of 24 characters or more."""
    chat: str = ""
    """The chat that it speaks in, such as "tg:111", yours; empty: one of its own, api:NAME."""


class PageSection(Section):
    listen: str = ""
    """Where the bot serves the owner's page all the time, such as "127.0.0.1:8766"; empty: it is there while `voltaire page` runs, and nowhere else (docs/page.md)."""
    key_file: Path | None = None
    """A file with a key of your own, readable to you alone. An address beyond this machine needs one; else the page makes its key."""
    url: str = Field("", pattern=r"^(https://[^/\s]+/?)?$")
    """The page's HTTPS address at your reverse proxy, such as "https://voltaire.example.org"."""
    hooks: dict[str, HookSection] = {}
    """Addresses at which other programs run a job, by name: `POST /hooks/NAME`, with data of at most 64 KiB, ten times a minute (docs/operating.md)."""
    clients: dict[str, ClientSection] = {}
    """Programs that talk to the agent as to a model in OpenAI's form, by name: `POST /v1/chat/completions` (docs/page.md)."""


class MetricsSection(Section):
    listen: str = Field("", pattern=r"^(\S+:\d{1,5})?$")
    """Where the bot serves figures for Prometheus, at /metrics, such as "127.0.0.1:9464"; empty: nowhere. There is no key: beyond this machine whoever reaches it reads them (docs/operating.md)."""


class StateSection(Section):
    dir: Path = Path()
    """Where everything lasting is kept, created readable to its owner alone. Empty: $XDG_STATE_HOME/voltaire, else ~/.local/state/voltaire."""
    keep_days: int = Field(0, ge=0)
    """Days that what was said is kept, to be searched and exported; 0: for ever. What stands in a chat's prompt stays, and so do notes."""
    records_days: int = Field(30, ge=2)
    """Days that answered messages, sent replies, decided approvals and deleted notes are kept."""
    backup_dir: Path = Path()
    """Where the bot puts a backup each day, without secrets: those of 7 days and of 4 weeks are kept. Empty: none."""
    usage_days: int = Field(365, ge=0)
    """Days that the figures of model calls and past runs of jobs are kept; 0: for ever."""
    ledger_days: int = Field(365, ge=0)
    """Days that the ledger (`voltaire audit`) is kept, and up to a month longer; 0: for ever."""


class Settings(BaseSettings):
    """The whole configuration. `load` makes one; nothing else should."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        enable_decoding=False,
        extra="forbid",
        frozen=True,
    )
    telegram: TelegramSection = TelegramSection.model_construct()
    matrix: MatrixSection = MatrixSection.model_construct()
    agent: AgentSection = AgentSection.model_construct()
    backend: BackendSection = BackendSection.model_construct()
    page: PageSection = PageSection.model_construct()
    metrics: MetricsSection = MetricsSection.model_construct()
    state: StateSection = StateSection.model_construct()
    _path: Path | None = PrivateAttr(None)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (env_settings, init_settings)

    @property
    def path(self) -> Path | None:
        """The file that it was read from."""
        return self._path

    @property
    def state_dir(self) -> Path:
        return self.state.dir if self.state.dir != Path() else default_state_dir()


def config_folder() -> Path:
    """The user's own configuration."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "voltaire"


def machine_timezone() -> str:
    """The machine's own time zone; UTC where it cannot be told."""
    with suppress(OSError, ValueError):
        name = str(Path("/etc/localtime").resolve()).partition("/zoneinfo/")[2]
        return AgentSection(timezone=name or "UTC").timezone
    return "UTC"


def default_state_dir() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "voltaire"


# -- finding and reading ------------------------------------------------------


def find_file(given: Path | None) -> Path | None:
    """`given`, $VOLTAIRE_CONFIG, the user's or the machine's file, in this order; None where there is none."""
    if given:
        return given
    if named := os.environ.get(PREFIX + "CONFIG"):
        return Path(named)
    return next(
        (path for path in (config_folder() / "config.toml", MACHINE) if can_see(path)), None
    )


def can_see(path: Path) -> bool:
    """Whether the file exists and this user may see it."""
    with suppress(PermissionError):
        return path.exists()
    return False


def load(given: Path | None = None) -> Settings:
    """Read the configuration; ConfigurationError says in one sentence what is wrong."""
    path = find_file(given)
    if path is None and f"{PREFIX}STATE__DIR" not in os.environ and closed(MACHINE.parent):
        raise ConfigurationError(OF_THE_MACHINE)
    values = read_toml(path) if path else {}
    check_environment()
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise ConfigurationError(explain(error, path)) from None
    settings._path = path
    return with_token(settings)


def exists(path: Path) -> bool:
    """Whether the file exists. Raises ConfigurationError where this user may not look into its folder."""
    try:
        return path.exists()
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> ConfigurationError:
    if isinstance(error, PermissionError) and path.is_relative_to(MACHINE.parent):
        return ConfigurationError(OF_THE_MACHINE)
    return ConfigurationError(f"{path} cannot be read: {error.strerror}.")


def closed(folder: Path) -> bool:
    """Whether the folder exists, but is not readable for this user."""
    return folder.is_dir() and not os.access(folder, os.X_OK)


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise unreadable(path, error) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}.") from None


def with_token(settings: Settings) -> Settings:
    """The settings with the token read from its file or from systemd's credentials.

    A file that this user may not read is skipped: the backend's service does not need the token.
    """
    telegram = settings.telegram
    if telegram.token.get_secret_value():
        return settings
    paths = [telegram.token_file] if telegram.token_file else []
    if folder := os.environ.get("CREDENTIALS_DIRECTORY"):
        credential = Path(folder) / "telegram-token"
        paths += [credential] if can_see(credential) else []
    for path in paths:
        try:
            token = path.read_text("utf-8").strip()
        except PermissionError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise ConfigurationError(
                f"telegram.token_file: {path} cannot be read: {reason}."
            ) from None
        if token:
            found = telegram.model_copy(update={"token": SecretStr(token)})
            return settings.model_copy(update={"telegram": found})
    return settings


# -- telling what is wrong ----------------------------------------------------


def explain(error: ValidationError, path: Path | None) -> str:
    """The first thing wrong, as one sentence: key, reason, value unless secret, nearest name."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    where = f" in {path}" if path else ""
    if first["type"] == "extra_forbidden":
        known = [name for name in keys() if same_section(name, key)] or list(keys())
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.4)
        named = near[0].rpartition(".")[2] if near and "*" in near[0] else "".join(near)
        hint = f"Did you mean {named}?" if near else f"Known here: {', '.join(known)}."
        return f"Unknown key {key}{where}. {hint}"
    if first["type"] == "missing":
        return f"{key} is missing{where}."
    reason = first["msg"].removeprefix("Value error, ")
    value = "" if SECRETS & set(key.split(".")) else f" (it is {first['input']!r})"
    return f"{key}{where}: {reason}{value}."


def same_section(known: str, key: str) -> bool:
    """Whether both keys are in one section; `*` in `known` matches any name or index."""
    ours, theirs = known.split(".")[:-1], key.split(".")[:-1]
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(a in ("*", b) for a, b in pairs)


def keys(section: type[BaseModel] = Settings, path: str = "") -> Iterator[str]:
    """Every key, dotted, sections included; `*` stands for a name or an index."""
    for name, field in section.model_fields.items():
        yield path + name
        many = next((a for a in get_args(field.annotation) if is_section(a)), None)
        inner = many or field.annotation
        if inner is not None and is_section(inner):
            yield from keys(inner, f"{path}{name}.{'*.' if many else ''}")


def is_section(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def check_environment() -> None:
    """An unknown VOLTAIRE_ variable is an error, as an unknown key in the file is."""
    known = {PREFIX + key.replace(".", "__").upper() for key in keys()} | {PREFIX + "CONFIG"}
    for name in sorted(name for name in os.environ if name.startswith(PREFIX)):
        if name.upper() in known or name.upper().startswith(NAMED_TABLES):
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ConfigurationError(f"Unknown setting {name} in the environment.{hint}")
