/** Schemas of values that are not about anything in particular. */
import { z } from 'zod'

/** In lower case, as Postgres formats it: ids are compared as text and are part of workflow ids. */
export const id = z.uuid().toLowerCase()
export const timestamp = z.iso.datetime()
export const EmptyObject = z.object({})

/** Text that Postgres can store: 1 to `lengthMax` characters, no NUL, no unpaired surrogate. */
export const storableText = (lengthMax: number) =>
  z
    .string()
    .min(1)
    .max(lengthMax)
    .refine((text) => !/[\0\p{Surrogate}]/u.test(text), 'must not contain a NUL or an unpaired surrogate')
