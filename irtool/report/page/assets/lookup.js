// Values of maps: one that must be there, and one that is made when it is first asked for.

/**
 * @template K, V
 * @param {Map<K, V>} map
 * @param {K} key
 * @returns {V}
 */
function valueAt(map, key) {
  const value = map.get(key);
  if (value === undefined) throw new Error(`no value of ${key}`);
  return value;
}

/**
 * @template K, V
 * @param {Map<K, V>} map
 * @param {K} key
 * @param {() => V} make
 * @returns {V}
 */
function valueOrNew(map, key, make) {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
