/** The whole surface on one page. Everything under `/api/v1` stands here and nowhere else. */
import type { Route } from './route.ts'

export const routes: readonly Route[] = []
