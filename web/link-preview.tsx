/** What other sites and chats show of a link: title, text and picture (Open Graph, and the card of X). */

/** 1200 by 630 pixels. */
export const previewImageName = 'preview.png'

interface LinkPreviewProps {
  readonly title: string
  readonly description: string
  readonly brandName: string
  /** Absolute, since other sites load it. */
  readonly image: string
}

export const LinkPreviewTags = ({ title, description, brandName, image }: LinkPreviewProps) => (
  <>
    <meta name="description" content={description} />
    <meta property="og:type" content="website" />
    <meta property="og:site_name" content={brandName} />
    <meta property="og:title" content={title} />
    <meta property="og:description" content={description} />
    <meta property="og:image" content={image} />
    <meta property="og:image:width" content="1200" />
    <meta property="og:image:height" content="630" />
    <meta property="og:image:alt" content="Three networks that join into one stream" />
    <meta name="twitter:card" content="summary_large_image" />
  </>
)
