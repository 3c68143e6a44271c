/** Parts that many routes' schemas are made of. */
import { z } from 'zod'

/** In lower case, as Postgres writes it: ids are compared as text, and actors are named by them. */
export const id = z.uuid().toLowerCase()
export const timestamp = z.iso.datetime()
export const Nothing = z.object({})

/** Text that a row can hold as it is: not empty, no NUL, no half of a character, no longer than `lengthMax` characters. */
export const storable = (lengthMax: number) =>
  z
    .string()
    .min(1)
    .max(lengthMax)
    .refine((text) => !/[\0\p{Surrogate}]/u.test(text), 'must not hold a NUL or half of a character')
