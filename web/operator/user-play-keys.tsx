/** The play keys of an account by their names: operators never see a key. */
import { DateTime, TimeAgo } from '../time-text.tsx'
import type { AccountDetail } from './operator-replies.ts'
import { type Column, ScrollingTable } from './scrolling-table.tsx'

type PlayKeysProps = Pick<AccountDetail, 'play_keys' | 'play_with_keys_only'>
type PlayKeyRow = AccountDetail['play_keys'][number]

const columns: readonly Column<PlayKeyRow>[] = [
  { heading: 'Name', cell: ({ name }) => name },
  { heading: 'Kind', cell: ({ kind }) => kind },
  { heading: 'Connection', cell: ({ connection_id: connectionId }) => connectionId ?? 'all' },
  { heading: 'Created', cell: (key) => <DateTime at={key.created_at} /> },
  { heading: 'Last used', cell: ({ last_used_at: at }) => (at === null ? 'never' : <TimeAgo at={at} />) },
]

export const PlayKeys = ({ play_keys: keys, play_with_keys_only: isOnly }: PlayKeysProps) => (
  <div class="stack">
    <h2>Play keys</h2>
    <p class="muted" data-play-with-keys-only={isOnly ? 'yes' : 'no'}>
      {isOnly ? 'Players need a play key: the stream token only publishes.' : 'The stream token admits players too.'}
    </p>
    <ScrollingTable
      label="Play keys of the account"
      columns={columns}
      empty="No play keys."
      rows={keys}
      keyOf={({ id }) => id}
      dataOf={({ id }) => ({ 'data-play-key': id })}
    />
  </div>
)
