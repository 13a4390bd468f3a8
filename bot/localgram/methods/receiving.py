"""Receiving updates: getUpdates and webhooks."""

import re

from bot.localgram.methods import Methods
from bot.localgram.wire import Call, Json, bad_request
from bot.localgram.world import World

SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
SET_WEBHOOK = "terminated by setWebhook request"
POLL_SECONDS = 50
BATCH = 100


def allowed_of(call: Call) -> list[str] | None:
    """The kinds asked for; None where the call says nothing about them."""
    if not call.text("allowed_updates"):
        return None
    return [str(kind) for kind in call.sequence("allowed_updates")]


async def get_updates(world: World, call: Call) -> list[Json]:
    limit = min(max(call.integer("limit", BATCH), 1), BATCH)
    seconds = min(max(call.integer("timeout"), 0), POLL_SECONDS)
    return await world.updates.take(call.integer("offset"), limit, float(seconds), allowed_of(call))


def set_webhook(world: World, call: Call) -> bool:
    """Telegram wants https; here any URL will do, for it leads to loopback."""
    url, secret = call.text("url"), call.text("secret_token")
    if not url:
        return delete_webhook(world, call)
    if not url.startswith(("http://", "https://")):
        raise bad_request("bad webhook: Webhook URL is invalid")
    if secret and not SECRET.fullmatch(secret):
        raise bad_request("secret token contains unallowed characters")
    _drop(world, call)
    world.updates.allow(allowed_of(call))
    world.updates.wake(SET_WEBHOOK)
    world.webhook.set(url, secret)
    return True


def delete_webhook(world: World, call: Call) -> bool:
    _drop(world, call)
    world.webhook.set("", "")
    return True


def _drop(world: World, call: Call) -> None:
    if call.flag("drop_pending_updates"):
        world.updates.drop()


def get_webhook_info(world: World, _: Call) -> Json:
    shown: Json = {
        "url": world.webhook.url,
        "has_custom_certificate": False,
        "pending_update_count": len(world.updates.pending()),
    }
    if world.webhook.failure:
        shown["last_error_date"], shown["last_error_message"] = world.webhook.failure
    if world.updates.allowed is not None:
        shown["allowed_updates"] = world.updates.allowed
    return shown


METHODS: Methods = {
    "getUpdates": get_updates,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
}
