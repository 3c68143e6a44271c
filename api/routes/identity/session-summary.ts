/** The summary of the signed-in account: user, entitlement, usage and active relay. */
import { z } from 'zod'
import type { Entitlement } from '../../../db/billing/entitlements.ts'
import type { FirstStepsRow } from '../../../db/identity/first-steps.ts'
import type { ProfileRow } from '../../../db/identity/profiles.ts'
import { openStreamToken } from '../../../db/sealed-tokens.ts'
import { accessReasons, accessStatuses, planStatuses, planTiers } from '../../../domain/billing/plans.ts'
import { oauthProviderNames } from '../../../providers/oauth/provider.ts'
import type { OperationExamples } from '../../http/operation-text.ts'
import { present } from '../../http/present.ts'
import { ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { audienceOf, presentSession, SessionView, View } from '../../views/relay-session.ts'
import { activeSession } from '../../views/relay-session-examples.ts'
import { presentTrial, TrialView } from '../../views/trial.ts'
import { presentUsage, UsageView } from '../billing/usage.ts'
import { route } from '../route.ts'

export const EntitlementView = z
  .object({
    relay_access_status: z.enum(accessStatuses),
    reason_code: z.enum(accessReasons),
    plan_tier: z.enum(planTiers),
    plan_status: z.enum(planStatuses),
    active_managed_conns: z.int(),
    max_concurrent_conns: z.int(),
    grace_ends_at: timestamp.nullable(),
    surplus_ends_at: timestamp
      .optional()
      .describe('When the newest relays beyond the limit end. Absent while no relay is beyond it.'),
    trial: TrialView,
  })
  .meta({ id: 'Entitlement' })

export const presentEntitlement = (entitlement: Entitlement): z.infer<typeof EntitlementView> =>
  present(EntitlementView, {
    ...entitlement,
    surplusEndsAt: entitlement.surplusEndsAt ?? undefined,
    trial: presentTrial(entitlement.trial),
  })

export const UserView = z
  .object({
    id,
    email: z.string().nullable(),
    email_verified: z.boolean(),
    plan_tier: z.enum(planTiers),
    relay_access_status: z.enum(accessStatuses),
    /** Absent in operator responses, because it is a secret. */
    stream_token: z.string().optional(),
    linked_accounts: z.array(z.object({ provider: z.enum(oauthProviderNames), linked: z.boolean() })),
    created_at: timestamp,
    deletion_due_at: timestamp
      .optional()
      .describe('When the account is erased. Absent unless its owner has scheduled the deletion.'),
  })
  .meta({ id: 'User' })

export const presentUser = (row: ProfileRow, entitlement: Entitlement): z.infer<typeof UserView> => ({
  id: row.id,
  email: row.email,
  email_verified: row.isEmailVerified,
  plan_tier: row.planTier,
  relay_access_status: entitlement.relayAccessStatus,
  linked_accounts: oauthProviderNames.map((provider) => ({
    provider,
    linked: row.linkedProviders.includes(provider),
  })),
  created_at: row.createdAt.toISOString(),
  ...(row.deletionDueAt ? { deletion_due_at: row.deletionDueAt.toISOString() } : {}),
})

const FirstStepsView = z
  .object({
    address_verified: z.boolean(),
    plan: z.boolean().describe('Whether the plan includes managed relays, or relays may be started without one.'),
    relay_started: z.boolean().describe('Whether a relay was ever started.'),
    phone_connected: z.boolean().describe('Whether video ever came in.'),
    player_connected: z.boolean().describe('Whether a player ever played it.'),
  })
  .meta({ id: 'FirstSteps' })

const presentFirstSteps = (
  { isEmailVerified }: ProfileRow,
  { planTier, relayAccessStatus }: Entitlement,
  { hasStartedRelay, hasSentVideo, hasPlayed }: FirstStepsRow,
): z.infer<typeof FirstStepsView> => ({
  address_verified: isEmailVerified,
  plan: planTier !== 'free' || relayAccessStatus === 'enabled',
  relay_started: hasStartedRelay,
  phone_connected: hasSentVideo,
  player_connected: hasPlayed,
})

const exampleUser = {
  id: '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364',
  email: 'streamer@example.com',
  email_verified: true,
  plan_tier: 'paid',
  relay_access_status: 'enabled',
  stream_token: 'q7Yx2mKd9RfT4wZb',
  linked_accounts: [
    { provider: 'twitch', linked: true },
    { provider: 'google', linked: false },
    { provider: 'discord', linked: false },
  ],
  created_at: '2026-05-12T16:20:00.000Z',
}

const exampleEntitlement = {
  relay_access_status: 'enabled',
  reason_code: 'ok',
  plan_tier: 'paid',
  plan_status: 'active',
  active_managed_conns: 1,
  max_concurrent_conns: 2,
  grace_ends_at: null,
}

const exampleUsage = {
  cycle_start: '2026-07-15T00:00:00.000Z',
  cycle_end: '2026-08-15T00:00:00.000Z',
  included_seconds: 720_000,
  consumed_seconds: 84_600,
  remaining_seconds: 635_400,
  overage_seconds: 0,
  active_sessions: 1,
  enforcement: 'report',
  as_of: '2026-08-01T18:30:00.000Z',
}

const exampleFirstSteps = {
  address_verified: true,
  plan: true,
  relay_started: true,
  phone_connected: true,
  player_connected: false,
}

const summaryExamples: OperationExamples = {
  replies: {
    200: {
      owner: {
        summary: 'With a live relay',
        value: {
          user: exampleUser,
          entitlement: exampleEntitlement,
          usage: exampleUsage,
          first_steps: exampleFirstSteps,
          active_relay: activeSession,
        },
      },
    },
  },
}

export const summary = route.user({
  id: 'getAccountSummary',
  summary: 'Show the account',
  description:
    'Everything that a client shows after a sign-in, in one request: the user, what the account may use, the relay time of the cycle, which of the first steps are done, and the oldest live relay. With `view=dock` the reply contains no secret.',
  reads: 'account_summary',
  query: View,
  answers: {
    200: z.object({
      user: UserView,
      entitlement: EntitlementView,
      usage: UsageView,
      first_steps: FirstStepsView,
      active_relay: SessionView.nullable(),
    }),
  },
  refuses: [],
  secret: true,
  examples: summaryExamples,
  handle: ({ query, read }, { config, sealing }) => {
    const { profile, entitlement, usage, firstSteps, liveRelays } = read
    const [oldest] = liveRelays.sessions
    const { relayAuthSecrets, relay } = config
    const { srtPassphrase } = relay
    const secrets =
      audienceOf(query) === 'owner'
        ? { sealing, streamToken: openStreamToken(sealing, profile.id, profile), srtPassphrase, relayAuthSecrets }
        : undefined
    return ok({
      user: {
        ...presentUser(profile, entitlement),
        ...(secrets ? { stream_token: secrets.streamToken } : {}),
      },
      entitlement: presentEntitlement(entitlement),
      usage: presentUsage({ usage, entitlement }, config.timeBank),
      first_steps: presentFirstSteps(profile, entitlement, firstSteps),
      active_relay: oldest ? presentSession(oldest, config.relay, secrets) : null,
    })
  },
})
