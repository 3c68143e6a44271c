/** What players see while no stream arrives, in words for the owner of the connection. */
import type { OnLoss } from '../../domain/relay/on-loss.ts'
import type { Connection } from '../api-replies.ts'

interface ModeTexts {
  readonly name: string
  readonly description: string
}

export const modeTexts: Readonly<Record<OnLoss, ModeTexts>> = {
  hold: { name: 'Nothing', description: 'Nothing is sent. Players freeze or go black.' },
  freeze: { name: 'The last picture', description: 'The last picture stays, with silence.' },
  slate: { name: 'My picture', description: 'A picture of yours, with silence.' },
}

/** In the words of a sentence that begins with what the players are. */
export const describeOnLoss = ({ on_loss: mode, slate }: Pick<Connection, 'on_loss' | 'slate'>): string => {
  if (mode === 'hold') return 'get nothing'
  if (mode === 'freeze') return 'keep the last picture, with silence'
  return slate === null ? 'see “Back in a moment”, with silence' : 'see your picture, with silence'
}
