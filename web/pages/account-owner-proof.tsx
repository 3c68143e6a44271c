/** The part of a form in which the owner of an account proves to be it: the password, or else a recent sign-in. */
import { expectSuccess } from '../../client/api-error.ts'
import type { Visit } from '../page.ts'
import { PasswordField } from './fields.tsx'
import type { Problem } from './messages.tsx'

export interface OwnerProofState {
  readonly hasPassword: boolean
  /** Whether the owner has a password or has signed in recently. */
  readonly isPossible: boolean
  readonly graceSeconds: number
}

export async function readOwnerProof(visit: Visit): Promise<OwnerProofState> {
  const account = expectSuccess(await visit.api.GET('/api/v1/auth/account'), 'A request for the proof of an owner')
  return {
    hasPassword: account.has_password,
    isPossible: account.has_password || account.is_sign_in_recent,
    graceSeconds: account.deletion_grace_seconds,
  }
}

interface OwnerProofFieldProps {
  readonly proof: OwnerProofState
  readonly problem?: Problem | undefined
}

export function OwnerProofField({ proof, problem }: OwnerProofFieldProps) {
  if (proof.hasPassword) return <PasswordField label="Current password" problem={problem} />
  if (proof.isPossible) return null
  return (
    <p class="warning" data-needs-sign-in="yes">
      Your account has no password, so this needs a recent sign-in. Sign out, sign in again, and come back within 10
      minutes.
    </p>
  )
}
