"""Tests the sign-in of the script of OBS, where its token is kept, and how it repeats requests."""

import os
import pathlib
import stat
import tempfile
import threading
import unittest
import urllib.parse
import urllib.request

import service
from loaded_script import relay_control as script


class NoVault:
    def save(self, _):
        return False

    def load(self):
        return ""

    def delete(self):
        pass


class AccountTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        running = service.running()
        self.service = running.__enter__()
        self.addCleanup(running.__exit__, None, None, None)
        self.store = script.TokenStore(self.service.url, os.path.join(self.folder, "relay-control"), NoVault())
        self.places = {"api": f"{self.service.url}/api/v1", "token": f"{self.service.url}/token", "revoke": None}

    def signed_in(self):
        account = script.Account(self.store)
        account.adopt(self.places, {"access_token": "access-1", "refresh_token": "refresh-1", "expires_in": 600})
        return account

    def files(self):
        return [path for path in pathlib.Path(self.folder).rglob("*") if path.is_file()]


class TokenStoreTest(AccountTest):
    def test_the_token_is_in_a_file_for_its_user_alone(self):
        self.signed_in()
        (path,) = (path for path in self.files() if b"refresh-1" in path.read_bytes())
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(path.parent.stat().st_mode), 0o700)

    def test_the_access_token_is_in_no_file(self):
        self.signed_in()
        self.assertEqual([path for path in self.files() if b"access-1" in path.read_bytes()], [])

    def test_a_new_token_replaces_the_former_one(self):
        account = self.signed_in()
        account.adopt(self.places, {"access_token": "access-2", "refresh_token": "refresh-2"})
        self.assertEqual([path for path in self.files() if b"refresh-1" in path.read_bytes()], [])
        self.assertEqual(self.store.load()["refresh_token"], "refresh-2")

    def test_a_vault_keeps_the_token_instead_of_a_file(self):
        class Memory(NoVault):
            secret = ""

            def save(self, secret):
                self.secret = secret
                return True

            def load(self):
                return self.secret

        self.store.save({"places": self.places, "refresh_token": "refresh-0"})
        self.store.vault = Memory()
        self.signed_in()
        self.assertEqual(self.files(), [])
        self.assertEqual(self.store.load()["refresh_token"], "refresh-1")

    def test_a_vault_that_keeps_nothing_leaves_the_token_in_the_file(self):
        vault = script.Vault("account", "linux")
        vault.program, vault.exists = "true", True
        self.store.vault = vault
        self.signed_in()
        self.assertEqual(self.store.load()["refresh_token"], "refresh-1")

    def test_a_vault_gets_its_secret_by_a_pipe(self):
        for platform in ("linux", "darwin"):
            log = os.path.join(self.folder, platform)
            program = os.path.join(self.folder, f"vault-{platform}")
            pathlib.Path(program).write_text(f'#!/bin/sh\necho "$@" >> {log}.arguments\ncat >> {log}.input\n')
            os.chmod(program, 0o700)
            vault = script.Vault("account", platform)
            vault.program, vault.exists = program, True
            vault.save("the-secret")
            self.assertNotIn("the-secret", pathlib.Path(f"{log}.arguments").read_text())
            self.assertIn("the-secret", pathlib.Path(f"{log}.input").read_text())

    def test_a_broken_file_is_no_sign_in(self):
        self.signed_in()
        pathlib.Path(self.store.path).write_text("{")
        self.assertIsNone(script.Account(self.store).places)

    def test_the_folder_is_that_of_the_system(self):
        self.assertTrue(script.config_folder("win32", {"APPDATA": "X"}).startswith("X"))
        self.assertIn("Application Support", script.config_folder("darwin", {}))
        self.assertEqual(script.config_folder("linux", {"XDG_CONFIG_HOME": "/c"}), "/c/relay-control")


class TokenTest(AccountTest):
    def refreshed(self, number):
        return {"access_token": f"access-{number}", "refresh_token": f"refresh-{number}", "expires_in": 600}

    def test_a_good_access_token_is_used_again(self):
        self.assertEqual(self.signed_in().token(), "access-1")
        self.assertEqual(self.service.requests, [])

    def test_a_refused_token_is_replaced_once_and_the_request_repeated(self):
        account = self.signed_in()
        self.service.will("/api/v1/ingests", 401, {"error": "unauthorized"})
        self.service.will("/token", 200, self.refreshed(2))
        self.service.will("/api/v1/ingests", 200, {"ingests": []})
        self.assertEqual(account.call("GET", "/ingests"), {"ingests": []})
        used = [headers["Authorization"] for headers, _ in self.service.sent("/api/v1/ingests")]
        self.assertEqual(used, ["Bearer access-1", "Bearer access-2"])
        self.assertEqual(self.store.load()["refresh_token"], "refresh-2")

    def test_a_token_that_another_obs_has_replaced_is_read_again(self):
        account, other = self.signed_in(), script.Account(self.store)
        self.service.will("/token", 200, self.refreshed(2))
        self.service.will("/token", 200, self.refreshed(3))
        other.token()
        account.token(refused="access-1")
        used = [urllib.parse.parse_qs(content)["refresh_token"] for _, content in self.service.sent("/token")]
        self.assertEqual(used, [["refresh-1"], ["refresh-2"]])

    def test_only_invalid_grant_ends_the_sign_in(self):
        account = self.signed_in()
        for status, error in [(503, "temporarily_unavailable"), (400, "invalid_request"), (401, "invalid_client")]:
            self.service.will("/token", status, {"error": error})
            with self.assertRaises(script.Refused):
                account.token(refused="access-1")
            self.assertIsNotNone(self.store.load())
        self.service.will("/token", None)
        with self.assertRaises(script.Unreachable):
            account.token(refused="access-1")
        self.service.will("/token", 400, {"error": "invalid_grant"})
        with self.assertRaises(script.SignedOut):
            account.token(refused="access-1")
        self.assertIsNone(self.store.load())

    def test_threads_that_need_a_token_at_the_same_time_refresh_once(self):
        account = script.Account(self.store)
        self.store.save({"places": self.places, "refresh_token": "refresh-1"})
        self.service.will("/token", 200, self.refreshed(2))
        tokens = []
        threads = [threading.Thread(target=lambda: tokens.append(account.token())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(tokens, ["access-2"] * 8)

    def test_a_redirect_is_refused_so_that_no_token_goes_elsewhere(self):
        account = self.signed_in()
        self.service.will("/api/v1/ingests", 302, {}, {"Location": f"{self.service.url}/elsewhere"})
        with self.assertRaises(script.Refused):
            account.call("GET", "/ingests")
        self.assertEqual(self.service.sent("/elsewhere"), [])

    def test_only_https_and_this_computer_are_accepted(self):
        for url in ("https://relays.example", "http://127.0.0.1:8081", "http://localhost", "http://[::1]:1"):
            self.assertEqual(script.check_address(url), url)
        for url in ("http://relays.example", "ftp://localhost", "file:///etc/passwd", "", "http://localhost.evil.example"):
            with self.assertRaises(script.Refused):
                script.check_address(url)


class StartTest(AccountTest):
    path = "/api/v1/relay/start?view=dock"

    def controller(self):
        self.events = []
        choices = script.Choices()
        controller = script.Controller(
            self.service.url, self.signed_in(), choices, lambda name, value: self.events.append((name, value))
        )
        controller.wants_relay = True
        controller.repeat = lambda work, wait=None: script.repeat(work, lambda _: False)
        return controller

    def keys(self):
        return [headers["Idempotency-Key"] for headers, _ in self.service.sent(self.path)]

    def started(self):
        self.service.will(self.path, 201, {"session": {"session_id": "s1"}})

    def test_a_lost_reply_is_repeated_with_the_same_key(self):
        controller = self.controller()
        self.service.will(self.path, None)
        self.service.will(self.path, 503, {"error": {"code": "temporarily_unavailable", "message": "Later."}})
        self.started()
        controller.start()
        self.assertEqual(len(self.keys()), 3)
        self.assertEqual(len(set(self.keys())), 1)
        self.assertIn(("session", {"session_id": "s1"}), self.events)

    def test_the_next_start_has_another_key(self):
        controller = self.controller()
        self.started()
        self.started()
        controller.start()
        controller.start()
        self.assertEqual(len(set(self.keys())), 2)

    def test_a_start_whose_answer_never_came_keeps_its_key_for_the_next_attempt(self):
        controller = self.controller()
        self.service.will(self.path, None)

        def give_up(*_):
            raise script.Cancelled()

        controller.repeat = lambda work, wait=None: script.repeat(work, give_up)
        with self.assertRaises(script.Cancelled):
            controller.start()
        self.started()
        controller.start()
        self.assertEqual(len(set(self.keys())), 1)

    def test_a_refusal_is_shown_in_the_words_of_the_service(self):
        for status, code in [
            (403, "relay_access_denied"),
            (403, "relay_limit_reached"),
            (403, "usage_exhausted"),
            (409, "connection_limit"),
            (400, "invalid_request"),
        ]:
            controller = self.controller()
            self.service.will(self.path, status, {"error": {"code": code, "message": f"About {code}."}})
            controller.run("start", controller.start)
            controller.jobs["start"].join()
            self.assertEqual(self.events, [("problem", f"About {code}.")])


class RepeatTest(unittest.TestCase):
    def test_pauses_double_up_to_a_limit_around_a_random_part(self):
        pauses = script.Pauses(0.5, 30, rand=lambda: 0.5)
        self.assertEqual([pauses.next() for _ in range(8)], [0.5, 1, 2, 4, 8, 16, 30, 30])
        pauses.reset()
        self.assertEqual(pauses.next(), 0.5)
        for _ in range(100):
            self.assertTrue(0.25 <= script.Pauses().next() <= 0.75)

    def test_it_waits_as_long_as_the_service_asks_for(self):
        waited, answers = [], [script.Refused(429, "rate_limited", "Wait.", 30), None]

        def work():
            answer = answers.pop(0)
            if answer:
                raise answer
            return "done"

        self.assertEqual(script.repeat(work, lambda seconds: waited.append(seconds)), "done")
        self.assertTrue(30 <= waited[0] <= 37.5)

    def test_an_answer_that_stays_is_not_repeated(self):
        def work():
            raise script.Refused(403, "relay_access_denied", "No.")

        with self.assertRaises(script.Refused):
            script.repeat(work, lambda _: self.fail("it has waited"))


class SignInTest(AccountTest):
    def offer(self):
        url = self.service.url
        document = {"protocol_version": 1, "issuer": f"{url}/oauth", "ingests_endpoint": f"{url}/api/v1/ingests"}
        self.service.will("/.well-known/irl-source-provider.json", 200, document)
        metadata = {
            "issuer": f"{url}/oauth",
            "authorization_endpoint": f"{url}/oauth/auth",
            "token_endpoint": f"{url}/oauth/token",
        }
        self.service.will("/oauth/.well-known/openid-configuration", 200, metadata)

    def come_back(self, url, **changes):
        """As a browser: returns the status of the page."""
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        answer = urllib.parse.urlencode({"code": "the-code", "state": query["state"], **changes})
        try:
            with urllib.request.urlopen(f"{query['redirect_uri']}?{answer}", timeout=5) as page:
                return page.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def test_the_challenge_is_that_of_rfc_7636(self):
        challenge = script.code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        self.assertEqual(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")

    def test_a_code_is_exchanged_with_its_verifier(self):
        self.offer()
        self.service.will("/oauth/token", 200, {"access_token": "a", "refresh_token": "r", "expires_in": 600})
        opened = []
        result = script.sign_in(
            self.service.url, lambda url: (opened.append(url), self.come_back(url)), lambda: False
        )
        self.assertEqual(result["tokens"]["refresh_token"], "r")
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(opened[0]).query))
        sent = dict(urllib.parse.parse_qsl(self.service.sent("/oauth/token")[0][1]))
        self.assertEqual(asked["code_challenge"], script.code_challenge(sent["code_verifier"]))
        self.assertEqual((asked["code_challenge_method"], asked["client_id"]), ("S256", "obs-relay-control"))
        self.assertRegex(asked["redirect_uri"], r"^http://127\.0\.0\.1:474[23]\d/callback$")
        self.assertEqual((sent["code"], sent["redirect_uri"]), ("the-code", asked["redirect_uri"]))

    def test_an_answer_with_another_state_is_ignored(self):
        self.offer()
        self.service.will("/oauth/token", 200, {"access_token": "a", "refresh_token": "r"})
        statuses = []

        def browse(url):
            statuses.append(self.come_back(url, state="guessed", code="stolen"))
            statuses.append(self.come_back(url))

        script.sign_in(self.service.url, browse, lambda: False)
        self.assertEqual(statuses, [400, 200])
        self.assertIn("code=the-code", self.service.sent("/oauth/token")[0][1])

    def test_a_denied_sign_in_says_so(self):
        self.offer()

        def browse(url):
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
            target = f"{query['redirect_uri']}?error=access_denied&state={query['state']}"
            urllib.request.urlopen(target, timeout=5).close()

        with self.assertRaises(script.Refused) as refused:
            script.sign_in(self.service.url, browse, lambda: False)
        self.assertIn("denied", refused.exception.message)

    def test_an_address_of_something_else_is_refused_in_words(self):
        self.service.will("/.well-known/irl-source-provider.json", 200, ["something else"])
        with self.assertRaises(script.Refused) as refused:
            script.sign_in(self.service.url, self.fail, lambda: False)
        self.assertEqual(refused.exception.message, "The address is not that of a relay service.")

    def test_a_sign_out_revokes_the_token_and_forgets_it_also_without_an_answer(self):
        for status in (200, None):
            account = self.signed_in()
            places = {**self.places, "revoke": f"{self.service.url}/revoke"}
            account.adopt(places, {"access_token": "a", "refresh_token": "r"})
            self.service.will("/revoke", status)
            account.sign_out()
            self.assertIn("token=r", self.service.sent("/revoke")[-1][1])
            self.assertIsNone(self.store.load())
            self.assertIsNone(account.places)

    def test_a_port_that_is_in_use_is_passed_over(self):
        with script.listen_for_browser() as first, script.listen_for_browser() as second:
            self.assertNotEqual(first.server_address, second.server_address)


if __name__ == "__main__":
    unittest.main()
