-- Notifications of an account: what its owner wants to get on which channel, and the one endpoint for messages.

-- A row enables one kind on one channel. Without a row it is off.
create table if not exists notification_settings (
  user_id    uuid not null references users on delete cascade,
  kind       text not null,
  channel    text not null,
  enabled_at timestamptz not null default now(),
  primary key (user_id, kind, channel),
  constraint notification_settings_kind_check check (kind in ('relay_contact_lost', 'relay_ended', 'payment_failed',
    'relays_surplus', 'usage_80', 'usage_95', 'usage_100')),
  constraint notification_settings_channel_check check (channel in ('email', 'endpoint'))
);

create table if not exists notification_endpoints (
  -- Each saved URL gets a new one.
  id            uuid primary key default gen_random_uuid(),
  user_id       uuid not null unique references users on delete cascade,
  type          text not null,
  -- Sealed, since a Discord webhook's URL is its only credential.
  url_sealed    text not null,
  -- The key that signs webhooks, sealed; null for Discord, which does not verify signatures.
  secret_sealed text,
  created_at    timestamptz not null default now(),
  -- Since when all attempts fail; null after a success.
  failing_since timestamptz,
  -- Nothing is sent to a disabled endpoint. Saving it again enables it.
  disabled_at     timestamptz,
  disabled_reason text,
  constraint notification_endpoints_type_check check (type in ('webhook', 'discord')),
  constraint notification_endpoints_disabled_reason_check check (disabled_reason in ('gone', 'failing')),
  constraint notification_endpoints_secret_check check ((type = 'webhook') = (secret_sealed is not null)),
  constraint notification_endpoints_disabled_check check ((disabled_at is null) = (disabled_reason is null))
);
