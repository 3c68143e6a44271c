/** Parts that many routes' schemas are made of. */
import { z } from 'zod'

export const id = z.uuid()
export const timestamp = z.iso.datetime()
export const Nothing = z.object({})

/** Text that a row can hold: not empty, no NUL, and no longer than `lengthMax` characters. */
export const storable = (lengthMax: number) =>
  z
    .string()
    .min(1)
    .max(lengthMax)
    .refine((text) => !text.includes('\0'), 'must not hold a NUL')
