/** Schemas that several routes share. */
import { z } from 'zod'

/** A UUID in lower case, as Postgres returns it: ids are compared as text and are part of workflow ids. */
export const id = z.uuid().toLowerCase()
export const timestamp = z.iso.datetime()
export const Nothing = z.object({})

/** Text that Postgres can store: 1 to `lengthMax` characters, without NUL and lone surrogates. */
export const storable = (lengthMax: number) =>
  z
    .string()
    .min(1)
    .max(lengthMax)
    .refine((text) => !/[\0\p{Surrogate}]/u.test(text), 'must not hold a NUL or half of a character')
