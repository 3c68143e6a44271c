/** Lists of the Hetzner Cloud API, of which one reply has one page. */
import type { z } from 'zod'
import type { HetznerClient } from './hetzner-client.ts'
import type { PageMeta } from './hetzner-shapes.ts'
import { RelayProviderError } from './provider.ts'

/** The maximum of the API. */
const itemsPerPage = 50

/** All items that have the labels of the selector, once each. Rejects when a page cannot be read. */
export async function readAllPages<Item extends { readonly id: number }, Reply extends { readonly meta: PageMeta }>(
  client: HetznerClient,
  path: string,
  {
    selector,
    shape,
    itemsOf,
  }: {
    readonly selector: string
    readonly shape: z.ZodType<Reply>
    readonly itemsOf: (reply: Reply) => readonly Item[]
  },
): Promise<Item[]> {
  const readPage = (page: number) => {
    const query = [
      ['label_selector', selector],
      ['sort', 'id:asc'],
      ['per_page', String(itemsPerPage)],
      ['page', String(page)],
    ] as const
    return client.request({ method: 'GET', path, query }, shape)
  }
  const first = await readPage(1)
  const found = new Map(itemsOf(first).map((item) => [item.id, item]))
  const lastPage = lastPageOf(first.meta, path)
  // Backwards, and the first page again: when an item is deleted meanwhile, all later ones move towards the first page,
  // so they may be read twice and are never missed.
  for (let page = lastPage; page >= 1 && lastPage > 1; page--)
    for (const item of itemsOf(await readPage(page))) found.set(item.id, item)
  return [...found.values()]
}

/** The API may leave it out on the last page. */
function lastPageOf({ pagination }: PageMeta, path: string): number {
  if (pagination.next_page === null) return 1
  if (pagination.last_page !== null) return pagination.last_page
  throw new RelayProviderError(`Hetzner did not report the number of pages of ${path}, so the list would be incomplete`)
}
