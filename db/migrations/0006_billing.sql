-- Money: what billing providers and operators told us, what the subscription actors made of it, and the Time Bank's notices.

-- The inbox. An event is kept before it is answered, once for each key, with the bytes as they came: they can be read again.
create table if not exists billing_events (
  id              uuid primary key default gen_random_uuid(),
  -- The order of acceptance.
  seq             bigint generated always as identity unique,
  provider        text not null check (provider in ('sandbox', 'lemonsqueezy', 'stripe', 'operator')),
  event_key       text not null check (length(event_key) between 1 and 300),
  type            text not null check (length(type) <= 200),
  action          text check (action in ('activate', 'update_addon', 'payment_recovery', 'payment_failed', 'cancelled',
                    'downgrade', 'refund', 'grant', 'withdraw')),
  -- Whose account the provider says it is, and the subscription that tells when it says nothing.
  user_ref        text,
  subscription_id text,
  user_id         uuid references users (id) on delete set null,
  -- What the subscription actor takes from it (platform/billing-fact.ts); null when it says nothing to us.
  fact            jsonb,
  body            bytea not null,
  status          text not null check (status in ('pending', 'applied', 'ignored', 'parked', 'dead')),
  error           text,
  occurred_at     timestamptz,
  received_at     timestamptz not null default clock_timestamp(),
  applied_at      timestamptz,
  unique (provider, event_key),
  check (status not in ('pending', 'applied') or (fact is not null and action is not null))
);

create index if not exists billing_events_pending on billing_events (user_id, seq) where status = 'pending';
create index if not exists billing_events_parked on billing_events (received_at) where status = 'parked';
create index if not exists billing_events_dead on billing_events (seq) where status = 'dead';
create index if not exists billing_events_user on billing_events (user_id, seq);
create index if not exists billing_events_subscription on billing_events (provider, subscription_id) where user_id is not null;
create index if not exists billing_events_newest on billing_events (seq desc);

-- Each subscription as its actor last saw it: whose it is, for events that don't say, and what reconciliation compares.
create table if not exists subscriptions (
  provider        text not null,
  subscription_id text not null,
  kind            text not null check (kind in ('plan', 'addon')),
  user_id         uuid not null references users (id) on delete cascade,
  status          text not null check (status in ('active', 'past_due', 'cancelled', 'ended')),
  quantity        integer not null default 1 check (quantity between 0 and 3),
  period_start    timestamptz,
  period_end      timestamptz,
  updated_at      timestamptz not null default now(),
  primary key (provider, subscription_id, kind, user_id)
);

create index if not exists subscriptions_user on subscriptions (user_id);

alter table users
  -- The billing period of the plan, which is the Time Bank's cycle.
  add column if not exists period_start timestamptz,
  add column if not exists period_end timestamptz,
  -- When the newest relays beyond the limit end, after add-ons were taken away.
  add column if not exists surplus_ends_at timestamptz,
  -- When the subscription actor is to act next: one that slept over it is woken.
  add column if not exists entitlement_due_at timestamptz,
  drop constraint if exists users_period_check,
  add constraint users_period_check check (period_end > period_start);

create index if not exists users_entitlement_due on users (entitlement_due_at) where entitlement_due_at is not null;
-- Plans end by their actor now.
drop index if exists users_plan_until;

-- The share of the cycle's relay time at which the owner was told, once a cycle.
create table if not exists usage_notices (
  user_id     uuid not null references users (id) on delete cascade,
  cycle_start timestamptz not null,
  percent     integer not null check (percent in (80, 95, 100)),
  at          timestamptz not null default now(),
  primary key (user_id, cycle_start, percent)
);

-- Who used relay time lately is looked for every minute.
create index if not exists usage_intervals_ended on usage_intervals (ended_at);

-- The sandbox's own side of billing: the provider that it plays keeps its subscriptions here.
create table if not exists sandbox_subscriptions (
  id           text primary key,
  user_id      uuid not null references users (id) on delete cascade,
  kind         text not null check (kind in ('plan', 'addon')),
  quantity     integer not null check (quantity between 0 and 3),
  status       text not null check (status in ('open', 'active', 'past_due', 'cancelled', 'ended')),
  invoice_id   text,
  period_start timestamptz,
  period_end   timestamptz,
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now()
);

create index if not exists sandbox_subscriptions_user on sandbox_subscriptions (user_id, created_at);
create index if not exists sandbox_subscriptions_open on sandbox_subscriptions (created_at) where status = 'open';
create index if not exists usage_notices_age on usage_notices (at);

-- Plans that operators gave before there was an inbox: each becomes the event that it would have been.
insert into billing_events (provider, event_key, type, action, user_ref, subscription_id, user_id, fact, body, status, occurred_at)
select 'operator', 'grant:' || id, 'grant', 'grant', id::text, 'grant', id,
  jsonb_build_object('key', 'grant:' || id, 'action', 'grant', 'provider', 'operator', 'subscriptionId', 'grant', 'kind', 'plan',
    'at', floor(extract(epoch from now()) * 1000)::bigint, 'quantity', addons, 'invoiceId', null, 'amount', null,
    -- Dates that nobody but a database can write, infinity among them, are for ever.
    'periodStart', null, 'periodEnd',
      case when plan_until < '10000-01-01 00:00Z' then floor(extract(epoch from plan_until) * 1000)::bigint end),
  '', 'pending', now()
from users where plan_tier = 'paid'
on conflict (provider, event_key) do nothing;
