/**
 * Everything that is stored about a person, by table, for the person's own copy of the data. Secrets and their hashes
 * are left out, and so is what operators note for each other. A test compares this page with the schema: each column of
 * a table with rows of an account is exported or left out for a reason.
 */
import type { Fragment, Sql } from '../connection.ts'

interface ExportedTable {
  readonly table: string
  readonly columns: readonly string[]
  /** Columns that are not exported, each with the reason. */
  readonly leftOut: Readonly<Record<string, string>>
  /** The condition on the account's rows; `user_id` by default. */
  readonly isOwn?: (sql: Sql, userId: string) => Fragment
}

const isOfSession = (sql: Sql, userId: string): Fragment =>
  sql`session_id in (select id from relay_sessions where user_id = ${userId})`

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

const secret = 'A secret, or its hash.'
const internal = 'State of the service, not of the person.'

export const exportedTables: readonly ExportedTable[] = [
  {
    table: 'users',
    isOwn: (sql, userId) => sql`id = ${userId}`,
    columns: words(`
      id email email_verified_at owner_proved_at created_at disabled_at relay_access_enabled deletion_due_at plan_tier plan_status
      addons plan_until period_start period_end payment_grace_ends_at surplus_ends_at addons_without_plan billed_plans
      plan_ending_notified_for billing_mails_announced_at play_with_keys_only stream_delay_seconds
      first_video_at first_player_at`),
    leftOut: {
      password_hash: secret,
      stream_token_sealed: secret,
      stream_token_hash: secret,
      entitlement_version: internal,
      entitlement_due_at: internal,
      inbox_changed_at: internal,
      wake_attempts: internal,
      woken_at: internal,
      next_wake_at: internal,
      deletion_attempt_at: internal,
      deletion_attempts: internal,
      trial_address_hash: secret,
    },
  },
  {
    table: 'user_oauth_accounts',
    columns: words(`
      id user_id provider provider_user_id provider_verified_email scopes linked_at chat_connected_at token_expires_at`),
    leftOut: { access_token_sealed: secret, refresh_token_sealed: secret, tokens_checked_at: internal },
  },
  { table: 'terms_acceptances', columns: words('user_id version accepted_at'), leftOut: {} },
  {
    table: 'auth_sessions',
    columns: words('id user_id client kind ip user_agent created_at last_used_at revoked_at revoked_for'),
    leftOut: {},
  },
  {
    table: 'app_grants',
    columns: words(`
      id user_id client_id scopes ip user_agent created_at connected_at last_used_at expires_at ended_at ended_for`),
    leftOut: { generation: internal, rotated_at: internal },
  },
  {
    table: 'app_requests',
    columns: words('user_id client_id scopes ip user_agent decision decided_at created_at expires_at'),
    leftOut: { id_hash: secret, payload_sealed: secret },
  },
  {
    table: 'login_attempts',
    columns: words('id user_id client_name ip user_agent status created_at expires_at decided_at last_polled_at'),
    leftOut: { poll_token_hash: secret, user_code: secret },
  },
  {
    table: 'mail_tokens',
    columns: words('user_id purpose email previous_email created_at expires_at used_at'),
    leftOut: { token_hash: secret },
  },
  {
    table: 'merge_requests',
    columns: words(`
      id user_id email provider provider_user_id proved_by failed_attempts created_at expires_at confirmed_at`),
    leftOut: { merge_token_hash: secret },
  },
  {
    table: 'oauth_authorization_requests',
    columns: words(`
      user_id provider intent scopes auth_session_id merge_request_id terms_version created_at expires_at
      consumed_at`),
    leftOut: { state_hash: secret, binding_hash: secret },
  },
  {
    table: 'provider_token_revocations',
    columns: words('id user_id provider provider_user_id field created_at'),
    leftOut: { token_sealed: secret, attempts: internal, next_attempt_at: internal },
  },
  {
    table: 'notification_settings',
    columns: words('user_id kind channel enabled enabled_at'),
    leftOut: {},
  },
  {
    table: 'notification_endpoints',
    columns: words('id user_id type created_at failing_since disabled_at disabled_reason'),
    leftOut: { url_sealed: 'The address of a Discord channel contains its secret.', secret_sealed: secret },
  },
  {
    table: 'outbox_messages',
    columns: words('id user_id channel kind created_at sent_at failed_at last_error'),
    leftOut: { content: 'Contains links that act as secrets.', attempts: internal, next_attempt_at: internal },
  },
  {
    table: 'audit_entries',
    columns: words('id at initiator action user_id ip client client_kind detail attempts last_at'),
    leftOut: { attempt_group: internal, attempt_slot: internal, attempt_source: internal },
  },
  {
    table: 'subscriptions',
    columns: words('user_id provider subscription_id kind status quantity addons period_start period_end updated_at'),
    leftOut: {},
  },
  {
    table: 'billing_customers',
    isOwn: (sql, userId) =>
      sql`(provider, subscription_id) in (select provider, subscription_id from subscriptions where user_id = ${userId})`,
    columns: words('provider subscription_id customer_id'),
    leftOut: {},
  },
  {
    table: 'billing_events',
    columns: words(`
      id user_id user_ref provider event_key type action subscription_id event body status occurred_at received_at applied_at
      settled_at`),
    leftOut: {
      seq: internal,
      error: internal,
      user_ref_source: internal,
      attempts: internal,
      next_attempt_at: internal,
    },
  },
  {
    table: 'sandbox_subscriptions',
    columns: words('id user_id kind quantity status invoice_id period_start period_end created_at updated_at'),
    leftOut: { claimed_until: internal },
  },
  {
    table: 'withdrawals',
    columns: words(`
      id user_id provider subscription_id kind quantity purchased_at name email received_at refunded_at refunded`),
    leftOut: { refund_error: internal, refund_failed_at: internal },
  },
  {
    table: 'relay_sessions',
    columns: words(`
      id user_id connection_id region state reason detail created_at active_at grace_started_at grace_ends_at stopped_at command
      command_initiator commanded_at instance_id relay_host relay_name relay_host_v6 srtla_port publish_port play_port
      stats_port may_move ending_soon_notified_at started_by_app started_by_plugin stream_format`),
    leftOut: {
      binding: internal,
      pair_token_sealed: secret,
      pair_token_hash: secret,
      relay_ws_token_sealed: secret,
      relay_ws_token_hash: secret,
      version: internal,
      command_seq: internal,
      command_delivered_seq: internal,
      deliver_at: internal,
      delivery_attempts: internal,
      signal_at: internal,
      signal_attempts: internal,
      instance_bound_at: internal,
      instance_missing_since: internal,
      operator_request: 'The address of an operator.',
      admission_revision: internal,
    },
  },
  {
    table: 'play_keys',
    columns: words('id user_id kind name connection_id app_id created_at last_used_at'),
    leftOut: { key_sealed: secret, key_hash: secret },
  },
  {
    table: 'share_links',
    columns: words('session_id user_id created_at expires_at'),
    leftOut: { token_hash: secret },
  },
  {
    table: 'connections',
    columns: words('label user_id name srtla_port publish_port play_port stats_port created_at last_used_at on_loss'),
    leftOut: {},
  },
  {
    table: 'slates',
    columns: words('connection_label user_id digest image created_at'),
    leftOut: {},
  },
  {
    table: 'relay_replacements',
    isOwn: isOfSession,
    columns: words('session_id binding instance_id replaced_by cause failed_at last_report_at bound_at restored_at'),
    leftOut: {},
  },
  {
    table: 'relay_transitions',
    isOwn: isOfSession,
    columns: words('session_id version from_state to_state reason initiator public_reason at'),
    leftOut: {},
  },
  {
    table: 'stream_events',
    isOwn: isOfSession,
    columns: words('session_id number kind at bitrate_kbps instance_id'),
    leftOut: { process_started_at_ms: internal, seq: internal },
  },
  {
    table: 'stream_records',
    isOwn: isOfSession,
    columns: words('session_id began_at points'),
    leftOut: {},
  },
  {
    table: 'path_events',
    isOwn: isOfSession,
    columns: words('session_id number kind at links_from links_to players reason role count instance_id'),
    leftOut: { process_started_at_ms: internal, seq: internal },
  },
  {
    table: 'relay_commands',
    isOwn: isOfSession,
    columns: words('session_id seq command initiator client public_reason at'),
    leftOut: {},
  },
  {
    table: 'relay_health',
    isOwn: isOfSession,
    columns: words(`
      session_id instance_id last_report_at idle_since ingest_at is_publishing bitrate_kbps links usual_links players stalled_players rtt_ms loss_pct repeat_pct engine
      phone_code phone_since player_code player_since
      publishing_since bytes_received peak_bitrate_kbps seconds_publishing recent_bitrate_kbps record_points
      record_slot`),
    leftOut: {
      bytes_total: internal,
      publishing_ms: internal,
      process_started_at_ms: internal,
      recent_slot: internal,
      is_held: internal,
      suspect_since: internal,
      gone_at: internal,
    },
  },
  {
    table: 'idempotency_keys',
    columns: words('user_id key session_id accepted_at'),
    leftOut: { request_hash: secret },
  },
  {
    table: 'usage_intervals',
    columns: words('id session_id user_id started_at ended_at'),
    leftOut: {},
  },
  { table: 'usage_days', columns: words('user_id day connection_id seconds'), leftOut: {} },
  { table: 'trials', columns: words('user_id started_at'), leftOut: { address_hash: secret } },
  { table: 'usage_notices', columns: words('user_id cycle_start percent at'), leftOut: {} },
]

/** Tables that refer to an account or its rows and are not exported, each with the reason. */
export const unexportedTables: Readonly<Record<string, string>> = {
  app_tokens: 'Hashes of secrets. Their approvals are in app_grants.',
  refresh_tokens: 'Hashes of secrets. Their sign-ins are in auth_sessions.',
  instances: 'Machines of the service. Those of a session are named by relay_sessions.',
  relay_addresses: 'Addresses of the service. That of a session is in relay_sessions.',
  stream_notices: 'Which stream events are still to be looked at. They are in stream_events.',
  erased_accounts: 'Accounts that do not exist any more.',
  erased_account_subscriptions: 'Subscriptions of accounts that do not exist any more.',
}

/** Columns that are not exported as they are stored. */
const expressions: Readonly<Record<string, string>> = {
  // Bytes that a provider sent, which need not be UTF-8.
  'billing_events.body': `encode(body, 'base64') as body`,
  'slates.image': `encode(image, 'base64') as image`,
  // As arrays with one element for each 10 s: up to number `record_slot` since 1970, or from `began_at` on.
  'relay_health.record_points': 'show_stream_points(pack_stream_points(record_points)) as record_points',
  'stream_records.points': 'show_stream_points(points) as points',
  // The address of an operator, and the notes of operators.
  'audit_entries.ip': `case when initiator <> 'operator' then ip end as ip`,
  'audit_entries.detail': `case when initiator = 'operator' then detail - 'reason' else detail end as detail`,
}

type ExportedRow = Readonly<Record<string, unknown>>

/**
 * The account's rows by table, with the names of columns as in the schema. Bodies of webhooks and images are in base64.
 * @param tx a snapshot, so that the tables agree.
 */
export async function exportAccount(tx: Sql, userId: string): Promise<Record<string, readonly ExportedRow[]>> {
  const tables: Record<string, readonly ExportedRow[]> = {}
  for (const exported of exportedTables) tables[exported.table] = await exportTable(tx, exported, userId)
  return tables
}

/** As JSON objects, since the driver renames columns of rows. */
async function exportTable(tx: Sql, { table, columns, isOwn }: ExportedTable, userId: string): Promise<ExportedRow[]> {
  const selected = columns.map((column) => expressions[`${table}.${column}`] ?? column).join(', ')
  const rows = await tx<{ row: ExportedRow }[]>`
    select to_json(own) as row from (
      select ${tx.unsafe(selected)} from ${tx(table)}
      where ${isOwn ? isOwn(tx, userId) : tx`user_id = ${userId}`} order by ctid) own`
  return rows.map(({ row }) => row)
}
