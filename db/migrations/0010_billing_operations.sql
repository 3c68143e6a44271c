-- One request at a time changes a subscription of the sandbox, unless it names the version that it is meant for.
alter table sandbox_subscriptions add column if not exists claimed_until timestamptz;

-- The provider's own customer of each subscription: for later checkouts, and for the page where that customer manages payments.
create table if not exists billing_customers (
  provider        text not null check (provider in ('sandbox', 'lemonsqueezy', 'stripe')),
  subscription_id text not null,
  customer_id     text not null check (length(customer_id) between 1 and 200),
  primary key (provider, subscription_id)
);

alter table users
  -- Add-ons that a provider goes on billing while the account has no plan, and plans that it bills at the same time. Written by
  -- the subscription workflow with the entitlement, so that operators' gauges count few rows.
  add column if not exists addons_without_plan integer not null default 0,
  add column if not exists billed_plans integer not null default 0;

update users u set addons_without_plan = b.addons, billed_plans = b.plans
from (
  select s.user_id,
    coalesce(sum(s.quantity) filter (where s.kind = 'addon' and a.plan_tier = 'free'), 0)::int as addons,
    (count(*) filter (where s.kind = 'plan'))::int as plans
  from subscriptions s join users a on a.id = s.user_id
  where s.status in ('active', 'past_due')
  group by s.user_id
) b
where u.id = b.user_id and (b.addons > 0 or b.plans > 0);

create index if not exists users_addons_without_plan on users (id) include (addons_without_plan) where addons_without_plan > 0;
create index if not exists users_two_plans on users (id) where billed_plans > 1;
-- Accounts by plan, counted from the index alone.
create index if not exists users_plan on users (plan_tier, plan_status);

-- Operators may set aside what can't be used: a dismissed event waits for no account, and can still be replayed.
alter table billing_events
  drop constraint if exists billing_events_status_check,
  add constraint billing_events_status_check
    check (status in ('unresolved', 'pending', 'applied', 'ignored', 'parked', 'dead', 'dismissed'));

create index if not exists billing_events_dismissed on billing_events (seq) where status = 'dismissed';
