-- Names of tables and columns in the terms of OAuth and of docs/architecture.md. No data changes.

alter table if exists oauth_states rename to oauth_authorization_requests;

do $$
declare
  name text;
  renaming record;
begin
  for name in
    select conname from pg_constraint
    where conrelid = 'oauth_authorization_requests'::regclass and conname like 'oauth\_states\_%'
  loop
    execute format('alter table oauth_authorization_requests rename constraint %I to %I', name,
      replace(name, 'oauth_states', 'oauth_authorization_requests'));
  end loop;
  for name in
    select indexname from pg_indexes
    where tablename = 'oauth_authorization_requests' and indexname like 'oauth\_states\_%'
  loop
    execute format('alter index %I rename to %I', name, replace(name, 'oauth_states', 'oauth_authorization_requests'));
  end loop;

  for renaming in
    select * from (values
      ('audit_entries', 'actor', 'initiator'),
      ('merge_requests', 'failed_tries', 'failed_attempts'),
      ('provider_token_revocations', 'tries', 'attempts'),
      ('provider_token_revocations', 'next_try_at', 'next_attempt_at'),
      ('user_oauth_accounts', 'vouched_email', 'provider_verified_email')) columns (table_name, old_name, new_name)
  loop
    if exists (
      select from information_schema.columns c
      where c.table_schema = 'public' and c.table_name = renaming.table_name and c.column_name = renaming.old_name
    ) then
      execute format('alter table %I rename column %I to %I', renaming.table_name, renaming.old_name, renaming.new_name);
    end if;
  end loop;
end $$;
