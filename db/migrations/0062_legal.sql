-- compatible: processes of earlier versions do not use the new tables and leave the new column null.
-- Which versions of the terms an account has accepted.
create table if not exists terms_acceptances (
  user_id     uuid        not null references users (id) on delete cascade,
  version     text        not null,
  accepted_at timestamptz not null default now(),
  primary key (user_id, version)
);

-- The version that was stated where the request began: accepted by the account that it creates.
alter table oauth_authorization_requests add column if not exists terms_version text;

-- Withdrawals from contracts, one for each subscription at a billing provider: an operator refunds it. That of an erased
-- account stays as a record of the payment, without what names the person.
create table if not exists withdrawals (
  id               uuid        primary key default gen_random_uuid(),
  user_id          uuid        references users (id) on delete set null,
  provider         text        not null,
  subscription_id  text        not null,
  kind             text        not null check (kind in ('plan', 'addon')),
  quantity         integer     not null,
  purchased_at     timestamptz not null,
  -- As the person stated them.
  name             text,
  email            text,
  received_at      timestamptz not null default now(),
  refunded_at      timestamptz,
  -- `provider`: this service refunded it there. `elsewhere`: an operator says so.
  refunded         text        check (refunded in ('provider', 'elsewhere')),
  -- Of the last attempt that failed.
  refund_error     text,
  refund_failed_at timestamptz,
  unique (provider, subscription_id),
  check ((refunded_at is null) = (refunded is null))
);
create index if not exists withdrawals_user on withdrawals (user_id) where user_id is not null;
create index if not exists withdrawals_open on withdrawals (received_at) where refunded_at is null;
create index if not exists withdrawals_refunded on withdrawals (refunded_at) where user_id is null;
