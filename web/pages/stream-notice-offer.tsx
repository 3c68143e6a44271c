/** Where a stream's events are listed: the offer to be notified of the next loss. */
import type { NotificationOverview } from './notification-texts.ts'

/** Nothing once any notification about streams is on, nor without an answer of the API. */
export const StreamNoticeOffer = ({ overview }: { readonly overview: NotificationOverview | undefined }) => {
  const kinds = overview?.kinds.filter(({ kind }) => kind.startsWith('stream_')) ?? []
  if (kinds.length === 0 || kinds.some(({ email, endpoint }) => email || endpoint)) return null
  return (
    <p>
      <a class="link" href="/account/notifications#stream_lost" data-offer="stream_lost">
        Get a message when the picture is gone
      </a>
    </p>
  )
}
