/** `/`: the landing page for visitors, and the relays page for users. */
import type { PageHandler } from '../page.ts'
import { findCapacity } from './capacity.tsx'
import { Landing } from './landing.tsx'

export const show: PageHandler = async (visit) => {
  if (visit.isSignedIn) return { redirectTo: '/relays' }
  const { brandName, prices, relayTime } = visit.config
  return {
    name: 'landing',
    title: 'Stay live when a network drops',
    preview: {
      description: `${brandName} receives your stream over every network that your phone or encoder has, and delivers it to OBS as one.`,
    },
    layout: 'full',
    styles: ['landing.css', 'plans.css'],
    page: <Landing brandName={brandName} prices={prices} relayTime={relayTime} capacity={await findCapacity(visit)} />,
  }
}
