-- compatible: an older program sends a kind that this one has on by default only where it was enabled. It takes a row that turns one off for one that enables it, and adds accounts and sessions without naming the new columns.

-- A row says whether a kind is on or off on a channel. Without a row the default of the kind counts.
alter table notification_settings add column if not exists enabled boolean not null default true;
alter table notification_settings drop constraint if exists notification_settings_kind_check;
alter table notification_settings add constraint notification_settings_kind_check check (kind in ('relay_contact_lost',
  'relay_ending_soon', 'relay_ended', 'payment_failed', 'plan_ending', 'relays_surplus', 'usage_80', 'usage_95', 'usage_100'));

-- The end of the plan that its owner was notified of: another end is notified again.
alter table users add column if not exists plan_ending_notified_for timestamptz;
create index if not exists users_plan_ending on users (plan_until) where plan_until is not null;

-- When it was announced to the account that mails about payments are on by default. Null for those that exist before they are; others know it
-- from the start.
alter table users add column if not exists billing_mails_announced_at timestamptz;
alter table users alter column billing_mails_announced_at set default now();
create index if not exists users_unannounced on users (id) where billing_mails_announced_at is null and email_verified_at is not null;

-- When the owner was notified that the session may soon be stopped because of its age.
alter table relay_sessions add column if not exists ending_soon_notified_at timestamptz;
