-- SPDX-License-Identifier: ISC
--
-- Nodes are told apart in any case of letters: the local accounts of "home" and "HOME", whose keys
-- are folded, would else be taken for each other's.
CREATE UNIQUE INDEX node_name_any_case_key ON node (lower(name));
