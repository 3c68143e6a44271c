"""Tests which scene the script of OBS puts on air, and when."""

import unittest

from loaded_script import relay_control as script

NAMES = {script.LIVE: "Live", script.WEAK: "Weak", script.BACK: "Back"}


def session(state="active", reason="relay_ready", key="s1", **members):
    return {"session_id": key, "connection_id": "default", "state": state, "reason": reason, **members}


def streams_after(*messages):
    streams = script.Streams()
    for message in messages:
        streams.apply(message)
    return streams


def has(**members):
    return {"type": "session", "session": session(**members)}


def event(kind, key="s1"):
    return {"type": "stream_event", "session_id": key, "kind": kind, "at": "", "bitrate_kbps": 0}


class SceneTest(unittest.TestCase):
    def scene(self, *messages):
        return streams_after(*messages).scene("default")

    def test_each_event_has_its_scene(self):
        for kind, expected in {
            "stream_started": script.LIVE,
            "stream_recovered": script.LIVE,
            "stream_weak": script.WEAK,
            "stream_lost": script.BACK,
            "stream_ended": script.BACK,
        }.items():
            self.assertEqual(self.scene(has(), event(kind)), expected, kind)

    def test_no_scene_belongs_on_air_before_the_service_has_answered(self):
        streams = script.Streams()
        self.assertIsNone(streams.scene("default"))
        streams.apply_live([])
        self.assertEqual(streams.scene("default"), script.BACK)

    def test_a_session_that_is_not_active_is_back_soon(self):
        live = [has(), event("stream_started")]
        self.assertEqual(self.scene(*live, has(state="grace", reason="health_lost")), script.BACK)
        self.assertEqual(self.scene(*live, has(state="stopped", reason="grace_elapsed")), script.BACK)
        self.assertEqual(self.scene(has(state="provisioning", reason="start_requested")), script.BACK)

    def test_a_stream_goes_on_while_its_relay_is_ending(self):
        self.assertEqual(
            self.scene(has(), event("stream_started"), has(state="grace", reason="stop_requested")), script.LIVE
        )

    def test_a_relay_that_comes_back_has_the_stream_it_had(self):
        lost = [has(), event("stream_started"), has(state="grace", reason="health_lost")]
        self.assertEqual(self.scene(*lost, has(reason="health_restored", detail=None)), script.LIVE)

    def test_another_relay_has_no_stream_until_it_says_so(self):
        replaced = [
            has(),
            event("stream_started"),
            has(state="grace", reason="health_lost"),
            has(reason="health_restored", detail="relay_replaced"),
        ]
        self.assertEqual(self.scene(*replaced), script.BACK)
        self.assertEqual(self.scene(*replaced, event("stream_recovered")), script.LIVE)
        publishing = has(reason="health_restored", detail="relay_replaced", ingest={"publishing": True})
        self.assertEqual(self.scene(*replaced, publishing), script.LIVE)

    def test_the_end_of_a_former_session_changes_nothing(self):
        self.assertEqual(
            self.scene(has(key="s1"), has(key="s2"), event("stream_started", "s2"), has(key="s1", state="stopped")),
            script.LIVE,
        )

    def test_other_connections_and_unknown_messages_change_nothing(self):
        other = {"type": "session", "session": {**session(key="s9", state="stopped"), "connection_id": "other"}}
        self.assertEqual(self.scene(has(), event("stream_weak"), other, {"type": "news"}), script.WEAK)

    def test_a_session_that_has_ended_without_a_message_is_gone(self):
        streams = streams_after(has(), event("stream_started"))
        streams.opened()
        streams.apply_live([])
        self.assertEqual(streams.scene("default"), script.BACK)

    def test_a_list_that_is_older_than_a_message_takes_nothing_away(self):
        streams = script.Streams()
        streams.opened()
        streams.apply(has())
        streams.apply(event("stream_started"))
        streams.apply_live([])
        self.assertEqual(streams.scene("default"), script.LIVE)


class SwitcherTest(unittest.TestCase):
    def setUp(self):
        self.switcher = script.Switcher()

    def test_it_switches_once_for_each_change(self):
        self.switcher.want(script.BACK)
        self.assertEqual(self.switcher.next_scene(0, "Live", NAMES), "Back")
        self.switcher.want(script.BACK)
        self.assertIsNone(self.switcher.next_scene(5, "Live", NAMES))
        self.switcher.want(None)
        self.assertIsNone(self.switcher.next_scene(6, "Live", NAMES))

    def test_it_leaves_a_scene_of_the_users_own(self):
        self.switcher.want(script.BACK)
        self.assertIsNone(self.switcher.next_scene(0, "Interview", NAMES))
        self.assertIsNone(self.switcher.next_scene(1, "Live", NAMES))

    def test_it_never_switches_twice_within_two_seconds_and_ends_where_it_should(self):
        self.switcher.want(script.BACK)
        self.assertEqual(self.switcher.next_scene(10, "Live", NAMES), "Back")
        self.switcher.want(script.LIVE)
        self.assertIsNone(self.switcher.next_scene(11.9, "Back", NAMES))
        self.assertEqual(self.switcher.next_scene(12, "Back", NAMES), "Live")

    def test_scenes_that_are_not_chosen_are_left_out(self):
        self.switcher.want(script.BACK)
        self.assertIsNone(self.switcher.next_scene(0, "Live", {**NAMES, script.BACK: ""}))
        self.switcher.want(script.WEAK)
        self.assertIsNone(self.switcher.next_scene(1, "Live", {**NAMES, script.WEAK: ""}))
        self.switcher.want(script.BACK)
        self.assertEqual(self.switcher.next_scene(2, "Live", NAMES), "Back")
        self.switcher.want(script.WEAK)
        self.assertEqual(self.switcher.next_scene(4, "Back", {**NAMES, script.WEAK: ""}), "Live")


class MediaTest(unittest.TestCase):
    def test_a_source_without_a_picture_for_three_seconds_after_an_end_is_gone(self):
        media = script.MediaWatch()
        self.assertFalse(media.is_gone(0, True, False, False))
        # It tries to connect.
        self.assertFalse(media.is_gone(2.9, False, False, False))
        self.assertTrue(media.is_gone(3, False, False, False))
        self.assertFalse(media.is_gone(4, False, True, False))
        self.assertFalse(media.is_gone(9, False, True, False))

    def test_a_source_that_has_ended_is_gone_until_its_picture_while_another_scene_is_on_air(self):
        media = script.MediaWatch()
        self.assertTrue(media.is_gone(0, True, False, True))
        self.assertTrue(media.is_gone(1, False, False, True))
        self.assertFalse(media.is_gone(1.5, False, True, True))

    def test_a_source_that_has_not_played_yet_is_not_gone(self):
        media = script.MediaWatch()
        self.assertFalse(media.is_gone(0, False, False, True))
        self.assertFalse(media.is_gone(60, False, False, False))


if __name__ == "__main__":
    unittest.main()
