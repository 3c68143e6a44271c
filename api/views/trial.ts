/** The free test time of an account without a plan. */
import { z } from 'zod'
import { type Trial, trialStates } from '../../domain/billing/trial.ts'

export const TrialView = z
  .object({
    remaining_seconds: z.int(),
    total_seconds: z.int(),
    state: z
      .enum(trialStates)
      .describe(
        '`open`: one relay can be started. `address_unverified`: not before the user opens the link in a mail of ours. `ended`: used up.',
      ),
  })
  .meta({ id: 'Trial' })
  .optional()
  .describe('The free test time. Absent with a plan, and where there is none.')

export const presentTrial = (trial: Trial | null): z.infer<typeof TrialView> =>
  trial === null
    ? undefined
    : { remaining_seconds: trial.remainingSeconds, total_seconds: trial.totalSeconds, state: trial.state }
