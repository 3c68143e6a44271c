-- The billing inbox: events whose provider has still to be asked, one owner for each subscription, accounts whose inbox
-- changed by other means than a new event, and bodies that are kept for a time.

alter table billing_events
  drop constraint if exists billing_events_status_check,
  add constraint billing_events_status_check
    check (status in ('unresolved', 'pending', 'applied', 'ignored', 'parked', 'dead')),
  -- Where user_ref comes from: the subscription as it was at that time, or an invoice, which keeps a copy of what its
  -- subscription named when the invoice was made.
  add column if not exists user_ref_source text not null default 'subscription'
    check (user_ref_source in ('subscription', 'invoice')),
  -- Of an unresolved event: how often its provider has been asked, and when it is asked next.
  add column if not exists attempts integer not null default 0 check (attempts >= 0),
  add column if not exists next_attempt_at timestamptz,
  -- When the event last became applied or ignored: its body is deleted some time after that.
  add column if not exists settled_at timestamptz,
  alter column body drop not null,
  drop constraint if exists billing_events_unresolved_check,
  add constraint billing_events_unresolved_check check (status <> 'unresolved' or next_attempt_at is not null);

update billing_events set settled_at = coalesce(applied_at, received_at) where status in ('applied', 'ignored');
update billing_events set user_ref_source = 'invoice'
where provider = 'stripe' and (type like 'invoice.%' or type like 'charge.%');

create index if not exists billing_events_unresolved on billing_events (next_attempt_at) where status = 'unresolved';
create index if not exists billing_events_unresolved_user on billing_events (user_id)
  where status = 'unresolved' and user_id is not null;
create index if not exists billing_events_bodies on billing_events (settled_at)
  where body is not null and status in ('applied', 'ignored');

-- Also finds events without an account: they are of the subscription's owner as soon as it has one.
drop index if exists billing_events_subscription;
create index billing_events_subscription on billing_events (provider, subscription_id) where subscription_id is not null;

alter table users
  -- When events were taken out of the account's inbox or replaced in it, until its workflow has judged without them.
  add column if not exists inbox_changed_at timestamptz;

create index if not exists users_inbox_changed on users (inbox_changed_at) where inbox_changed_at is not null;

-- Subscriptions that are in the inboxes of several accounts go to their owner, as new events do (db/billing-owners.ts).
create temporary table subscription_owners on commit drop as
select distinct on (e.provider, e.subscription_id) e.provider, e.subscription_id, u.id as user_id
from billing_events e
  join users u on u.id =
    case when e.user_ref ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then e.user_ref::uuid end
where e.provider <> 'operator' and e.fact is not null and e.status <> 'dead'
order by e.provider, e.subscription_id, e.user_ref_source = 'subscription' desc, e.occurred_at desc, e.seq desc;

update users set entitlement_version = entitlement_version + 1, inbox_changed_at = now()
where id in (
  select e.user_id from billing_events e join subscription_owners o using (provider, subscription_id)
  where e.user_id <> o.user_id);
update billing_events e set user_id = o.user_id, status = 'pending'
from subscription_owners o
where e.provider = o.provider and e.subscription_id = o.subscription_id and e.user_id <> o.user_id
  and e.status in ('pending', 'applied');

-- One row for each subscription and kind: the owner's workflow writes it.
delete from subscriptions s using subscriptions newer
where s.provider = newer.provider and s.subscription_id = newer.subscription_id and s.kind = newer.kind
  and (newer.updated_at, newer.user_id) > (s.updated_at, s.user_id);
alter table subscriptions drop constraint if exists subscriptions_pkey;
alter table subscriptions add primary key (provider, subscription_id, kind);
