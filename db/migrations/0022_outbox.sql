-- Messages to users, written in the transaction that causes them and sent afterwards by the jobs of activities/jobs/outbox-jobs.ts.
create table if not exists outbox_messages (
  id              uuid primary key default gen_random_uuid(),
  user_id         uuid references users (id) on delete cascade,
  channel         text not null check (channel in ('email', 'webhook', 'discord')),
  kind            text not null,
  -- JSON, sealed (platform/sealing.ts). Null after the end, except that the mailbox keeps it.
  content         bytea,
  created_at      timestamptz not null default now(),
  attempts        integer not null default 0,
  -- Null once the message is sent or given up.
  next_attempt_at timestamptz default now(),
  sent_at         timestamptz,
  failed_at       timestamptz,
  -- Of the last attempt, without secrets.
  last_error      text,
  constraint outbox_messages_end check (
    (next_attempt_at is null) = (sent_at is not null or failed_at is not null) and (sent_at is null or failed_at is null))
);

create index if not exists outbox_messages_due on outbox_messages (channel, next_attempt_at) where next_attempt_at is not null;
create index if not exists outbox_messages_ended on outbox_messages (created_at) where next_attempt_at is null;
create index if not exists outbox_messages_failed on outbox_messages (failed_at) where failed_at is not null;
create index if not exists outbox_messages_user on outbox_messages (user_id);
