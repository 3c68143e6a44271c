-- A database of version 0.1.0, beside what the baseline creates: its migrations, and rows in every table.
-- The migration tests apply it after the baseline. Rows of later versions go into files of their own.

insert into schema_migrations (name, checksum, compatible)
select name, encode(sha256(name::bytea), 'hex'), case when name >= '0037' then true end
from unnest(array['0001_accounts.sql', '0012_relay_recovery.sql', '0044_of_a_branch.sql', '0045_relay_programs.sql']) name;

insert into users (id, email, email_verified_at, stream_token_sealed, stream_token_hash, plan_tier, plan_status, period_start, period_end)
values
  ('00000000-0000-4000-8000-000000000001', 'ada@example.com', now(), 'v1.key.ada', sha256('ada'), 'paid', 'active', now() - interval '1 day', now() + interval '29 days'),
  ('00000000-0000-4000-8000-000000000002', null, null, 'v1.key.ben', sha256('ben'), 'free', 'none', null, null);

insert into auth_sessions (id, user_id, client, ip, kind)
values ('10000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'obs', '192.0.2.1', 'plugin');
insert into refresh_tokens (token_hash, auth_session_id, expires_at)
values (sha256('refresh'), '10000000-0000-4000-8000-000000000001', now() + interval '30 days');
insert into login_attempts (poll_token_hash, user_code, client_name, ip, expires_at)
values (sha256('poll'), 'ABCD-EFGH', 'obs', '192.0.2.1', now() + interval '5 minutes');
insert into mail_tokens (token_hash, user_id, purpose, email, expires_at)
values (sha256('mail'), '00000000-0000-4000-8000-000000000001', 'reset_password', 'ada@example.com', now() + interval '1 hour');
insert into user_oauth_accounts (user_id, provider, provider_user_id, access_token_sealed, refresh_token_sealed, scopes, chat_connected_at)
values ('00000000-0000-4000-8000-000000000001', 'twitch', '1', 'v1.key.a', 'v1.key.r', '{chat:read}', now());
insert into merge_requests (id, user_id, email, provider, provider_user_id, merge_token_hash, expires_at)
values ('20000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'ada@example.com', 'google', '2',
  sha256('merge'), now() + interval '10 minutes');
insert into oauth_authorization_requests (state_hash, binding_hash, provider, intent, scopes, merge_request_id, expires_at)
values (sha256('state'), sha256('binding'), 'google', 'merge', 'identity', '20000000-0000-4000-8000-000000000001',
  now() + interval '10 minutes');
insert into provider_token_revocations (provider, provider_user_id, user_id, field, token_sealed)
values ('discord', '3', '00000000-0000-4000-8000-000000000001', 'access_token', 'v1.key.x');
insert into operator_sessions (token_hash, password_hash, expires_at)
values (sha256('operator'), sha256('password'), now() + interval '1 hour');
insert into operator_networks (network) values ('192.0.2.7');
insert into audit_entries (initiator, action, user_id, ip)
values ('user', 'signed_in', '00000000-0000-4000-8000-000000000001', '192.0.2.1');
insert into erased_accounts (user_id) values ('00000000-0000-4000-8000-000000000009');
insert into sign_in_failures (minute, failures) values (date_trunc('minute', now()), 2);

insert into relay_sessions (id, user_id, connection_id, region, command_initiator, pair_token_sealed, pair_token_hash,
  relay_ws_token_sealed, relay_ws_token_hash)
values
  ('30000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', 'default', 'local', 'user', 'v1.key.p',
    sha256('p'), 'v1.key.w', sha256('w')),
  ('30000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-000000000001', 'second', 'local', 'user', null, null, null, null);
update relay_sessions set state = 'active', reason = 'relay_ready', version = 1, instance_id = 'local-1', active_at = now(),
  instance_bound_at = now() where id = '30000000-0000-4000-8000-000000000001';
update relay_sessions set state = 'stopped', reason = 'stop_requested', version = 1, stopped_at = now()
  where id = '30000000-0000-4000-8000-000000000002';
insert into relay_transitions (session_id, version, from_state, to_state, reason, initiator)
values ('30000000-0000-4000-8000-000000000001', 1, 'provisioning', 'active', 'relay_ready', 'relay');
insert into relay_health (session_id, instance_id, ingest_at, is_publishing, bitrate_kbps, links, players, bytes_total,
  recent_bitrate_kbps, recent_slot)
values ('30000000-0000-4000-8000-000000000001', 'local-1', now(), true, 6000, 3, 1, 9000000000, array[null, 6000], 179000000);
insert into idempotency_keys (user_id, key, request_hash, session_id)
values ('00000000-0000-4000-8000-000000000001', gen_random_uuid(), sha256('request'), '30000000-0000-4000-8000-000000000001');
insert into usage_intervals (session_id, user_id, started_at)
values ('30000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001', now());
insert into usage_days (user_id, day, connection_id, seconds)
values ('00000000-0000-4000-8000-000000000001', current_date - 40, 'default', 3600.5);

insert into instances (instance_id, session_id, region, provider, is_warm)
values ('local-1', '30000000-0000-4000-8000-000000000001', 'local', 'local', true);
insert into regions (region, drained_at) values ('local', now());
insert into relay_programs (file_name, code) values ('relay-node-0.4.0-000000000000.mjs', 'code');
insert into report_paths (region) values ('local');
insert into provider_checks (region) values ('local');
insert into epochs (name) values ('');

insert into billing_events (provider, event_key, type, action, subscription_id, user_id, event, body, status, occurred_at)
values ('sandbox', 'evt_1', 'subscription.activated', 'activate', 'sub_1', '00000000-0000-4000-8000-000000000001', '{}', '\x00ff',
  'applied', now());
insert into billing_customers (provider, subscription_id, customer_id) values ('sandbox', 'sub_1', 'cus_1');
insert into subscriptions (provider, subscription_id, kind, user_id, status)
values ('sandbox', 'sub_1', 'plan', '00000000-0000-4000-8000-000000000001', 'active');
insert into sandbox_subscriptions (id, user_id, kind, quantity, status)
values ('sub_1', '00000000-0000-4000-8000-000000000001', 'plan', 1, 'active');
insert into erased_account_subscriptions (provider, subscription_id, account_id)
values ('stripe', 'sub_9', '00000000-0000-4000-8000-000000000009');
insert into usage_notices (user_id, cycle_start, percent) values ('00000000-0000-4000-8000-000000000001', now(), 80);

insert into outbox_messages (user_id, channel, kind, content)
values ('00000000-0000-4000-8000-000000000001', 'email', 'relay_ended', 'v1.key.m');
insert into notification_endpoints (user_id, type, url_sealed, secret_sealed)
values ('00000000-0000-4000-8000-000000000001', 'webhook', 'v1.key.u', 'v1.key.s');
insert into notification_settings (user_id, kind, channel, enabled)
values ('00000000-0000-4000-8000-000000000001', 'usage_80', 'email', false);

insert into workers (id) values ('40000000-0000-4000-8000-000000000001');
insert into jobs (name) values ('deliver_commands');
insert into rate_limit_windows (key, opened_at, requests) values ('login:192.0.2.1', now(), 3);
insert into ended_workflows (workflow_id, workflow_type, first_run_id, last_run_id) values ('relay-session/1', 'relaySession', 'a', 'b');
insert into certificate_checks (endpoint) values ('api');
