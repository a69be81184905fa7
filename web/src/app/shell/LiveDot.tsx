import { Tooltip } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { useLiveState } from '@/api/news'
import css from './shell.module.css'

/** Whether the page moves by itself, in colour and word. */
export function LiveDot() {
  const { t } = useTranslation()
  const state = useLiveState()
  return (
    <Tooltip label={t(`live_${state}_help`)}>
      <span className={css.live} data-live={state}>
        <span className={css.dot} aria-hidden />
        {t(`live_${state}`)}
      </span>
    </Tooltip>
  )
}
