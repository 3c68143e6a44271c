alter table users
  -- Wakes that the jobs have sent to the account's workflow since it last wrote an entitlement, and when the next one may follow.
  add column if not exists wake_attempts integer not null default 0,
  add column if not exists woken_at timestamptz,
  add column if not exists next_wake_at timestamptz;
