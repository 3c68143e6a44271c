-- incompatible: processes of earlier versions name the deleted columns in their statements.
-- Tokens are stored encrypted only. A row that still has one in plain text would lose it, so it stops the migration.
do $$
begin
  if exists (select from information_schema.columns
    where table_schema = current_schema() and table_name = 'users' and column_name = 'stream_token') then
    if exists (select from users where stream_token is not null)
      or exists (select from relay_sessions where pair_token is not null or relay_ws_token is not null) then
      raise exception 'tokens are stored in plain text: run version 0.1.0 until its job reseal_secrets has encrypted them';
    end if;
  end if;
end $$;

alter table users
  drop column if exists stream_token,
  alter column stream_token_sealed set not null,
  alter column stream_token_hash set not null;

alter table relay_sessions
  drop column if exists pair_token,
  drop column if exists relay_ws_token,
  drop constraint if exists relay_sessions_pair_token_sealed,
  drop constraint if exists relay_sessions_relay_ws_token_sealed,
  drop constraint if exists relay_sessions_stopped_without_tokens,
  add constraint relay_sessions_pair_token_sealed check ((pair_token_sealed is null) = (pair_token_hash is null)),
  add constraint relay_sessions_relay_ws_token_sealed check ((relay_ws_token_sealed is null) = (relay_ws_token_hash is null)),
  add constraint relay_sessions_stopped_without_tokens
    check (state <> 'stopped' or pair_token_sealed is null and relay_ws_token_sealed is null);
