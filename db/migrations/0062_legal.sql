-- compatible: processes of earlier versions do not use the new table and leave the new column null.
-- Which versions of the terms an account has accepted.
create table if not exists terms_acceptances (
  user_id     uuid        not null references users (id) on delete cascade,
  version     text        not null,
  accepted_at timestamptz not null default now(),
  primary key (user_id, version)
);

-- The version that was stated where the request began: accepted by the account that it creates.
alter table oauth_authorization_requests add column if not exists terms_version text;
