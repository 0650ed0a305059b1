"""file_trust.py rejects files that others can write, and names path, owner and mode."""

import os
import pathlib
import tempfile
import unittest

import file_trust


class FileTrust(unittest.TestCase):
    def setUp(self):
        os.environ.pop("MESHARD_TRUST_FILES", None)
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "file").write_text("x")
        (self.root / "file").chmod(0o644)
        try:
            file_trust.check(self.root)
        except file_trust.Untrusted as error:
            self.skipTest(str(error))

    def tearDown(self):
        os.environ.pop("MESHARD_TRUST_FILES", None)
        self.folder.cleanup()

    def refused(self, path, *parts):
        with self.assertRaises(file_trust.Untrusted) as caught:
            file_trust.check(path)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_modes(self):
        file_trust.check(self.root / "file")
        (self.root / "file").chmod(0o646)
        self.refused(self.root / "file", str(self.root / "file"), "0646", f"({os.geteuid()})")
        (self.root / "file").chmod(0o644)
        self.root.chmod(0o777)
        self.refused(self.root / "file", "0777")
        self.refused(self.root / "not" / "there", "0777")
        os.environ["MESHARD_TRUST_FILES"] = "1"
        file_trust.check(self.root / "file")

    def test_owners(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give files away")
        os.chown(self.root / "file", 4998, 4998)
        file_trust.check(self.root / "file")  # root may load what one user installed
        os.chown(self.root, 4999, 4999)
        self.refused(self.root / "file", str(self.root), "4998", "4999")


if __name__ == "__main__":
    unittest.main(verbosity=0)
